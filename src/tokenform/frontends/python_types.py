"""Python types as grammars: models, dataclasses, typed dictionaries, enums, literals, signatures.

Purpose: one JSON Schema for a type, and the way from an accepted document back to an instance.
Invariant: the schema and the reader come from the same pydantic adapter, so whatever the grammar
accepts is read by the rules that it was written from.  Rules that no schema can state (a validator written
in Python) are checked when a document is read.
Rejected: a schema exporter of our own (pydantic's knows aliases, constraints, discriminators and
custom types); reading a function's arguments by calling it (a document must not run code).
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import pydantic
import typing_extensions

from tokenform.errors import InvalidType, LimitExceeded, TokenformError
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.json_text import read_json
from tokenform.frontends.meanings import prompt_schema, reading_schema, within_floats
from tokenform.frontends.nested_json import with_nested
from tokenform.frontends.pattern_dialects import without_dialects
from tokenform.frontends.portable_types import portable
from tokenform.frontends.readable import Readable
from tokenform.frontends.structs import StructReader, holds_struct
from tokenform.frontends.type_strings import check_strings
from tokenform.frontends.value_shapes import Shapes, arguments_of, validated


def from_type(tp: Any, *, name: str | None = None, **options: Any) -> Grammar:
    """The grammar of the JSON documents of a Python type; `parse` gives instances of it.

    Args:
        tp: a pydantic model, dataclass, TypedDict, Enum, Literal, builtin generic, union, an attrs class,
            a msgspec Struct (or what msgspec reads around one), or a function, whose documents are its
            arguments by name and whose value is the dictionary to call it with.  A string is no type: strings
            are never run as code.
        name: what errors call the type.
        **options: those of `json_schema`; properties that the type does not declare are left out
            (`additional="forbid"`) unless asked for.
    Raises:
        InvalidType: no schema can be made of it, or a string stands in it for a type.
        LimitExceeded: it is too large.
        UnsupportedSchema: the schema that it has can't be enforced.
    """
    label = name or getattr(_plain(tp), "__qualname__", None) or str(tp)
    check_strings(tp, label)
    read = reader_of(tp, label)
    schema = exported(read)
    options.setdefault("additional", "forbid")
    enforced = reading_schema(schema)
    if options.get("numbers") == "any":
        enforced = within_floats(enforced)
    read.in_order = options.get("order", "declared") == "declared"
    inner = with_nested(enforced, options)
    shown = without_dialects(prompt_schema(schema))
    return Grammar(inner.core, form=inner.form, read=read, source=inner.source, schema=shown)


def is_type(value: Any) -> bool:
    """Whether `from_type` is meant: a class, a typing form or a function."""
    return (
        isinstance(value, type)
        or _is_function(value)
        or typing.get_origin(value) is not None
        or isinstance(value, typing.ForwardRef | typing.NewType | typing_extensions.TypeAliasType)
    )


def _is_function(value: Any) -> bool:
    """Whether a document of this is its arguments."""
    plain = _plain(value)
    return inspect.isfunction(plain) or inspect.ismethod(plain)


def _plain(value: Any) -> Any:
    """The function that a method, a `partial` or a decorated function (`__wrapped__`) stands for."""
    if isinstance(value, type):
        return value
    while isinstance(value, functools.partial):
        value = value.func
    return inspect.unwrap(value) if hasattr(value, "__wrapped__") else value


class TypeReader:
    """From a document to its value.

    Args:
        adapter: pydantic's adapter of the type.
        label: what errors call the type.
        arguments: of a function: the names of its parameters by field.

    Attributes:
        made: the function that made it, and its arguments, so that other processes make it again: what
            pydantic makes of a signature is a class that no module has.
    """

    made: tuple[Callable[..., Any], tuple[Any, ...]]

    def __init__(
        self, adapter: pydantic.TypeAdapter[Any], label: str, arguments: Mapping[str, str] | None = None
    ) -> None:
        self.adapter, self.label, self.arguments, self.in_order = adapter, label, arguments, True

    def __call__(self, text: str) -> Any:
        try:
            value = validated(self.adapter, text, self.label)
        except InvalidType as error:
            error.text, error.partial = text, read_json(text, name="the document", kind=InvalidType)
            raise
        return value if self.arguments is None else arguments_of(value, self.arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        check_importable(self.made[1][0])
        return _made_again, (*self.made, self.in_order)

    def schema(self) -> dict[str, Any]:
        return self.adapter.json_schema(by_alias=True, mode="validation", schema_generator=Readable)

    @cached_property
    def shapes(self) -> Shapes:
        """What becomes of the document's parts while it is written."""
        core: Any = self.adapter.core_schema
        return Shapes(core, self.label, in_order=self.in_order, arguments=self.arguments)


def _made_again(make: Callable[..., TypeReader], arguments: tuple[Any, ...], in_order: bool) -> TypeReader:
    """A reader that was pickled."""
    made = make(*arguments)
    made.in_order = in_order
    return made


def check_importable(tp: Any) -> None:
    """Refuses to pickle what other processes can't import.

    Raises:
        InvalidType
    """
    name = getattr(tp, "__qualname__", "")
    # cloudpickle, which Ray and joblib bring, writes such things out with their code
    if "<locals>" in name and "cloudpickle" not in sys.modules:
        raise InvalidType(
            f"{name} is defined inside a function, so another process can't import it, and a grammar of it "
            "can't be pickled; define it at the top level of a module."
        )


def reader_of(tp: Any, label: str) -> TypeReader | StructReader:
    """What reads the documents of a type; raises what `from_type` does."""
    if isinstance(tp, functools.partial) and not _is_function(tp):  # pydantic would call it
        raise InvalidType(f"{label} has no annotations; give a function that calls it.")
    if tp is pydantic.BaseModel:
        raise InvalidType("BaseModel itself has no fields; give a class that is derived from it.")
    try:
        if holds_struct(tp):
            return StructReader(tp, label)
        if _is_function(tp):
            read = _signature_reader(tp, label)
        else:
            read = TypeReader(pydantic.TypeAdapter(portable(tp)), label)
        read.made = reader_of, (tp, label)
        return read
    except TokenformError:
        raise
    except Exception as error:  # a type's own hooks run here, and raise what they like
        raise _refusal(f"no JSON Schema can be made of {label}", error, label) from error


def exported(read: TypeReader | StructReader) -> dict[str, Any]:
    """The schema of a type with the meanings of its reader; raises what `from_type` does."""
    try:
        return read.schema()
    except Exception as error:  # a type's own hooks run here, and raise what they like
        place = getattr(error, "place", "") or read.label
        raise _refusal(f"{place} has no JSON Schema", error, read.label) from error


def _signature_reader(function: Callable[..., Any], label: str) -> TypeReader:
    """The arguments of a function, by name; those that a `partial` has already are not written."""
    plain = _plain(function)
    written = dict(plain.__annotations__)
    made = written.pop("return", None)  # it may be known to type checkers alone
    parameters = types.SimpleNamespace(__annotations__=written)
    hints = typing.get_type_hints(parameters, plain.__globals__, include_extras=True)
    known = function.keywords if isinstance(function, functools.partial) else {}
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for number, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.name in known:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidType(f"{label} takes {parameter}: only parameters that have a name can be written.")
        if parameter.name not in hints:
            raise InvalidType(f"the parameter {parameter.name} of {label} has no annotation; give it a type.")
        default = ... if parameter.default is parameter.empty else parameter.default
        # Fields get names of their own, so that a parameter may be called `schema` or `_x`.
        field = f"argument_{number}"
        names[field] = parameter.name
        fields[field] = (portable(hints[parameter.name]), pydantic.Field(default, alias=parameter.name))
    if not fields and getattr(made, "__name__", made) == "Grammar":
        raise InvalidType(f"{label} makes a grammar: call it, {label}().")
    model = pydantic.create_model(plain.__name__, **fields)
    return TypeReader(pydantic.TypeAdapter(model), label, names)


def _refusal(said: str, error: Exception, label: str) -> TokenformError:
    if isinstance(error, RecursionError):
        return LimitExceeded(f"{label} is nested too deeply for pydantic; name inner parts as classes.")
    return InvalidType(f"{said}: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    message = str(error).strip() or type(error).__name__
    return message.splitlines()[0].rstrip(".") + "."
