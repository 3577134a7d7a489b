"""Python types as grammars: models, dataclasses, typed dictionaries, enums, literals, signatures.

Purpose: one JSON Schema for a type, and the way from an accepted document back to an instance.
Invariant: the schema and the reader come from the same pydantic adapter, so whatever the grammar
accepts is read by the rules that it was written from.  Rules that no schema can state (a validator written
in Python) are checked when a document is read.
Rejected: a schema exporter of our own (pydantic's knows aliases, constraints, discriminators and
custom types); reading a function's arguments by calling it (a document must not run code).
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

import pydantic
import typing_extensions

from tokenform.errors import InvalidType, LimitExceeded, TokenformError
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.json_text import plain_integers
from tokenform.frontends.readable import Readable, with_meanings, within_floats
from tokenform.frontends.schemas import json_schema
from tokenform.frontends.type_strings import check_strings


def from_type(tp: Any, *, name: str | None = None, **options: Any) -> Grammar:
    """The grammar of the JSON documents of a Python type; `parse` gives instances of it.

    Args:
        tp: a pydantic model, dataclass, TypedDict, Enum, Literal, builtin generic, union, or a
            function, whose documents are its arguments by name and whose value is the dictionary
            to call it with.  A string is no type: strings are never run as code.
        name: what errors call the type.
        **options: those of `json_schema`; properties that the type does not declare are left out
            (`additional="forbid"`) unless asked for.
    Raises:
        InvalidType: no schema can be made of it, or a string stands in it for a type.
        LimitExceeded: it is too large.
        UnsupportedSchema: the schema that it has can't be enforced.
    """
    label = name or getattr(tp, "__qualname__", None) or str(tp)
    check_strings(tp, label)
    adapter, read = _reader(tp, label)
    try:
        schema = adapter.json_schema(by_alias=True, mode="validation", schema_generator=Readable)
    except Exception as error:  # a type's own hooks run here, and raise what they like
        raise _refusal(f"{label} has no JSON Schema", error, label) from error
    schema = with_meanings(schema)
    options.setdefault("additional", "forbid")
    if options.get("numbers") == "any":
        schema = within_floats(schema)
    inner = json_schema(schema, **options)
    return Grammar(inner.core, form=inner.form, read=read, source=inner.source, schema=schema)


def is_type(value: Any) -> bool:
    """Whether `from_type` is meant: a class, a typing form or a function."""
    return (
        isinstance(value, type)
        or inspect.isfunction(value)
        or inspect.ismethod(value)
        or typing.get_origin(value) is not None
    )


def _reader(tp: Any, label: str) -> tuple[pydantic.TypeAdapter[Any], Callable[[str], Any]]:
    """The adapter of the type, and the function from a document to its value."""
    try:
        if inspect.isfunction(tp) or inspect.ismethod(tp):
            return _signature_reader(tp, label)
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(_portable(tp))
    except TokenformError:
        raise
    except Exception as error:  # a type's own hooks run here, and raise what they like
        raise _refusal(f"no JSON Schema can be made of {label}", error, label) from error

    def read(text: str) -> Any:
        return _validated(adapter, text, label)

    return adapter, read


def _signature_reader(
    function: Callable[..., Any], label: str
) -> tuple[pydantic.TypeAdapter[Any], Callable[[str], dict[str, Any]]]:
    """The arguments of a function, by name."""
    hints = typing.get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    for number, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidType(f"{label} takes {parameter}: only parameters that have a name can be written.")
        if parameter.name not in hints:
            raise InvalidType(f"the parameter {parameter.name} of {label} has no annotation; give it a type.")
        default = ... if parameter.default is parameter.empty else parameter.default
        # Fields get names of their own, so that a parameter may be called `schema` or `_x`.
        field = f"argument_{number}"
        aliases[field] = parameter.name
        fields[field] = (_portable(hints[parameter.name]), pydantic.Field(default, alias=parameter.name))
    model = pydantic.create_model(getattr(function, "__name__", "arguments"), **fields)
    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(model)

    def read(text: str) -> dict[str, Any]:
        instance = _validated(adapter, text, label)
        return {
            aliases[field]: getattr(instance, field) for field in fields if field in instance.model_fields_set
        }

    return adapter, read


def _validated(adapter: pydantic.TypeAdapter[Any], text: str, label: str) -> Any:
    try:
        return adapter.validate_json(text)
    except pydantic.ValidationError as error:
        try:  # JSON Schema's integers may be written as 1.0 or 1e3, pydantic's may not
            return adapter.validate_json(plain_integers(text))
        except (pydantic.ValidationError, LimitExceeded):
            pass
        first = error.errors(include_url=False)[0]
        place = "".join(f"/{part}" for part in first["loc"])
        raise InvalidType(
            f"{label} refuses a document of its own schema{place and f' at {place}'} ({first['msg']}): "
            "state the rule in the type's schema, or read the text yourself."
        ) from error


def _portable(tp: Any) -> Any:
    """The type with every `typing.TypedDict` as `typing_extensions` spells it: before Python 3.12 the
    standard one does not say which module its annotations belong to, and pydantic refuses it."""
    if sys.version_info >= (3, 12):
        return tp
    # Built at run time, so they are values here and no types for the checker.
    annotated: Any = typing.Annotated
    union: Any = typing.Union
    make_typed_dict: Any = typing_extensions.TypedDict
    if typing.is_typeddict(tp):
        hints = typing.get_type_hints(tp, include_extras=True)
        required = {key: _portable(hint) for key, hint in hints.items() if key in tp.__required_keys__}
        optional = {
            key: typing_extensions.NotRequired[_portable(hint)]
            for key, hint in hints.items()
            if key not in tp.__required_keys__
        }
        ordered = {key: {**required, **optional}[key] for key in hints}
        rebuilt = make_typed_dict(tp.__name__, ordered)
        rebuilt.__module__, rebuilt.__doc__ = tp.__module__, tp.__doc__
        return rebuilt
    origin, arguments = typing.get_origin(tp), typing.get_args(tp)
    if origin is None or origin is typing.Literal or not arguments:
        return tp
    if origin is typing.Annotated:
        parts = (_portable(arguments[0]), *tp.__metadata__)
        return annotated[parts]
    rewritten = tuple(_portable(argument) for argument in arguments)
    if rewritten == arguments:
        return tp
    if origin is typing.Union or origin is types.UnionType:
        return union[rewritten]
    return origin[rewritten]


def _refusal(said: str, error: Exception, label: str) -> TokenformError:
    if isinstance(error, RecursionError):
        return LimitExceeded(f"{label} is nested too deeply for pydantic; name inner parts as classes.")
    return InvalidType(f"{said}: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    told = str(error).strip() or type(error).__name__
    return told.splitlines()[0].rstrip(".") + "."
