"""Types against pydantic itself: what it writes and reads can be written, what is written it reads."""

from __future__ import annotations

import dataclasses
import os
import random
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union, get_args, get_origin

import attrs
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter, ValidationError, create_model
from typing_extensions import TypedDict

import tokenform as tf
from tokenform import errors
from tokenform.frontends.json_reader import JsonReader

from .values import KEYS, SCALARS, Kind, whole

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])
LIKED = b'0123456789.-:TZ"abcPYD,}]{[+/eEH '
quick = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))


def drawn(automaton: tf.TokenAutomaton, rng: random.Random, most: int = 100) -> str:
    """A text at random, of tokens that values like, ended soon."""
    state, text = automaton.start, bytearray()
    while True:
        allowed: list[int] = automaton.allowed_tokens(state).tolist()
        if 256 in allowed and (rng.random() < 0.3 or len(text) > most or len(allowed) == 1):
            return text.decode()
        allowed = [token for token in allowed if token != 256]
        if len(text) > most:
            allowed = [min(allowed, key=lambda token: automaton.distance(automaton.advance(state, token)))]
        elif rng.random() < 0.8:
            allowed = [token for token in allowed if token in LIKED] or allowed
        token = rng.choice(allowed)
        state = automaton.advance(state, token)
        text.append(token)


def refusal(grammar: tf.Grammar, text: str) -> errors.InvalidType | None:
    """What the judges of the type say of a text before the whole is read."""
    reader = JsonReader(grammar.shapes.checks())
    try:
        reader.feed(text)
        reader.finish()
    except errors.InvalidType as error:
        return error
    return None


def check(tp: Any, values: st.SearchStrategy[Any], data: Any, seed: int) -> None:
    """Both directions, for values and texts drawn at random."""
    adapter: TypeAdapter[Any] = TypeAdapter(tp)
    grammar = tf.from_type(tp)
    automaton, rng = grammar.compile(BYTES), random.Random(seed)
    for _ in range(2):
        value = data.draw(values)
        for options in ({}, {"round_trip": True}, {"exclude_none": True}):
            try:
                text = adapter.dump_json(value, by_alias=True, warnings=False, **options).decode()
                again = adapter.validate_json(text)
                if adapter.dump_json(again, by_alias=True, warnings=False, **options).decode() != text:
                    continue  # what was written breaks a rule, and is read as something else
            except (ValueError, TypeError):
                continue
            assert automaton.matches(text.encode()), (tp, text, automaton.check(text.encode()))
    for _ in range(3):
        text = drawn(automaton, rng)
        judged = refusal(grammar, text)
        try:
            grammar.parse(text)
        except errors.InvalidType as error:
            assert grammar.shapes.coded, (tp, text, error)  # so it would be drawn again
        else:
            assert judged is None, (tp, text, judged)


@pytest.mark.parametrize("kind", SCALARS, ids=lambda kind: str(kind[0])[:50])
@quick
@given(data=st.data(), seed=st.integers(0, 10**9))
def test_scalars(kind: Kind, data: Any, seed: int) -> None:
    check(*kind, data, seed)


@pytest.mark.parametrize("kind", KEYS, ids=lambda kind: str(kind[0])[:50])
@quick
@given(data=st.data(), seed=st.integers(0, 10**9))
def test_names_of_mappings(kind: Kind, data: Any, seed: int) -> None:
    key, keys = kind
    check(dict[key, int], st.dictionaries(keys, whole, max_size=3), data, seed)


def instance(model: Any, fields: dict[str, Any]) -> Any:
    """An instance whose values were never judged."""
    made = model.model_construct()
    object.__setattr__(made, "__dict__", {name: fields[name] for name in model.model_fields})
    object.__setattr__(made, "__pydantic_fields_set__", set(fields))
    return made


@st.composite
def types(draw: Any, depth: int = 2) -> Kind:
    """A type, and values of it."""
    if depth == 0 or draw(st.integers(0, 9)) < 3:
        return draw(st.sampled_from(SCALARS))
    make = draw(st.sampled_from([_container, _mapping, _either, _model, _model, _record, _tagged, _root]))
    return make(draw, lambda: draw(types(depth=depth - 1)))


def _container(draw: Any, inner: Any) -> Kind:
    (first, firsts), (second, seconds) = inner(), inner()
    return draw(
        st.sampled_from(
            [
                (list[first], st.lists(firsts, max_size=3)),
                (tuple[first, second], st.tuples(firsts, seconds)),
                (tuple[first, ...], st.lists(firsts, max_size=3).map(tuple)),
                (Annotated[first, Field(description="x")], firsts),
            ]
        )
    )


def _mapping(draw: Any, inner: Any) -> Kind:
    (key, keys), (value, values) = draw(st.sampled_from(KEYS)), inner()
    return dict[key, value], st.dictionaries(keys, values, max_size=3)


_WRITES_ALL = {pydantic.IPvAnyAddress, pydantic.IPvAnyInterface, pydantic.IPvAnyNetwork}
"""As members of a union these write the others' values as well, each as its `str`: 0 as "0"."""


def _either(draw: Any, inner: Any) -> Kind:
    (first, firsts), (second, seconds) = inner(), inner()
    members = get_args(Union[first, second])  # noqa: UP007
    bare = {get_args(one)[0] if get_origin(one) is Annotated else one for one in members}
    if draw(st.booleans()) or bare & _WRITES_ALL:
        return Optional[first], st.one_of(st.none(), firsts)  # noqa: UP045
    return Union[first, second], st.one_of(firsts, seconds)  # noqa: UP007


def _fields(draw: Any, inner: Any) -> dict[str, Kind]:
    return {name: inner() for name in ["a", "b_c", "Ünï"][: draw(st.integers(1, 3))]}


def _model(draw: Any, inner: Any) -> Kind:
    spec: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, (tp, inside) in _fields(draw, inner).items():
        optional = draw(st.booleans())
        alias = draw(st.sampled_from([None, name.upper() + "-x", name + '"']))
        spec[name] = (Optional[tp] if optional else tp, Field(None if optional else ..., alias=alias))  # noqa: UP045
        values[name] = st.one_of(st.none(), inside) if optional else inside
    by_name = draw(st.booleans())
    model = create_model("Made", __config__=ConfigDict(populate_by_name=by_name), **spec)
    return model, st.fixed_dictionaries(values).map(lambda fields: instance(model, fields))


def _record(draw: Any, inner: Any) -> Kind:
    fields = {name.lower().replace("ü", "u"): kind for name, kind in _fields(draw, inner).items()}
    typed: dict[str, Any] = {name: tp for name, (tp, _) in fields.items()}
    values = st.tuples(*[inside for _, inside in fields.values()])
    kind = draw(st.sampled_from(["dataclass", "TypedDict", "NamedTuple", "attrs"]))
    if kind == "TypedDict":
        made: Any = TypedDict("Made", typed)  # type: ignore[operator]
        return made, values.map(lambda row: dict(zip(typed, row, strict=True)))
    if kind == "NamedTuple":
        made = NamedTuple("Made", list(typed.items()))  # type: ignore[misc]
    elif kind == "dataclass":
        made = dataclasses.make_dataclass("Made", list(typed.items()))
    else:
        return _attrs(typed), values.map(lambda row: dict(zip(typed, row, strict=True)))
    return made, values.map(lambda row: made(*row))


def _attrs(typed: dict[str, Any]) -> Any:
    """pydantic knows no attrs classes, so a typed dictionary of the same fields stands for them here; the
    class itself is tested by `test_attrs_are_read_as_their_fields`."""
    return TypedDict("Made", typed)  # type: ignore[operator]


def _tagged(draw: Any, inner: Any) -> Kind:
    members: list[Any] = []
    values: list[Any] = []
    for number in range(2):
        tp, inside = inner()
        tag = f"k{number}"
        default: Any = tag if draw(st.booleans()) else ...
        model = create_model(f"Made{number}", kind=(Literal[tag], default), v=(tp, ...))  # type: ignore[valid-type]
        members.append(model)
        values.append(inside.map(lambda v, m=model, k=tag: instance(m, {"kind": k, "v": v})))
    return Annotated[Union[tuple(members)], Field(discriminator="kind")], st.one_of(*values)  # noqa: UP007


def _root(draw: Any, inner: Any) -> Kind:
    tp, values = inner()
    model = create_model("Made", __base__=RootModel[tp])  # type: ignore[valid-type]
    return model, values.map(model.model_construct)


@settings(quick, max_examples=80)
@given(kind=types(), data=st.data(), seed=st.integers(0, 10**9))
def test_types_made_of_others(kind: Kind, data: Any, seed: int) -> None:
    check(*kind, data, seed)


@pytest.mark.slow
@settings(quick, max_examples=int(os.environ.get("TOKENFORM_TYPES", "1500")))
@given(kind=types(depth=3), data=st.data(), seed=st.integers(0, 10**9))
def test_many_types_made_of_others(kind: Kind, data: Any, seed: int) -> None:
    check(*kind, data, seed)


class Tree(BaseModel):
    name: str
    under: list[Tree] = []
    by: dict[int, Tree] = {}


trees: Any = st.recursive(
    st.builds(Tree, name=st.text("ab", max_size=2)),
    lambda inner: st.builds(
        Tree,
        name=st.just("x"),
        under=st.lists(inner, max_size=2),
        by=st.dictionaries(whole, inner, max_size=1),
    ),
    max_leaves=4,
)


@settings(quick, max_examples=20)
@given(data=st.data(), seed=st.integers(0, 10**9))
def test_types_that_hold_themselves(data: Any, seed: int) -> None:
    check(Tree, trees, data, seed)


@pytest.mark.parametrize("kind", SCALARS[::4], ids=lambda kind: str(kind[0])[:50])
def test_attrs_are_read_as_their_fields(kind: Kind) -> None:
    made = attrs.make_class("Made", {"f": attrs.field(type=kind[0])})
    grammar = tf.from_type(made)
    adapter: TypeAdapter[Any] = TypeAdapter(TypedDict("Made", {"f": kind[0]}))  # type: ignore[operator]
    rng = random.Random(1)
    for _ in range(3):
        text = drawn(grammar.compile(BYTES), rng)
        try:
            want = adapter.validate_json(text)["f"]
        except ValidationError:
            assert refusal(grammar, text) is not None
        else:
            assert repr(grammar.parse(text).f) == repr(want)


def function(a: int, b: list[Tree]) -> None:
    """Never called."""


def test_functions_are_read_as_their_arguments() -> None:
    grammar = tf.from_type(function)
    assert grammar.compile(BYTES).matches(b'{"a":1,"b":[{"name":"x","by":{"7":{"name":"y"}}}]}')
    assert not grammar.compile(BYTES).matches(b'{"a":1,"b":[{"name":"x","by":{"y":{"name":"y"}}}]}')
