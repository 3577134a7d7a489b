"""Types as pydantic takes them: what it doesn't know, or not in this version of Python, said in its terms.

Purpose: attrs classes, by their fields; `typing.TypedDict` before Python 3.12.
Invariant: a value is made by the class itself, `__init__` with its converters and validators included.
Rejected: cattrs for attrs classes (its hooks say how values are made, not which documents there are).
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from typing import Any

import typing_extensions
from pydantic_core import core_schema

from tokenform.errors import InvalidType

# Built at run time, so they are values here and no types for the checker.
_annotated: Any = typing.Annotated
_union: Any = typing.Union
_typed_dict: Any = typing_extensions.TypedDict


def portable(tp: Any, around: tuple[Any, ...] = ()) -> Any:
    """The type with its attrs classes, and before Python 3.12 every `typing.TypedDict`, as pydantic knows
    them: the standard one does not say there which module its annotations belong to.

    Args:
        around: the attrs classes that it stands in.
    Raises:
        InvalidType: an attrs class holds itself.
    """
    cls = typing.get_origin(tp) or tp
    if isinstance(cls, type) and hasattr(cls, "__attrs_attrs__"):
        if tp in around:
            raise InvalidType(
                f"the attrs class {cls.__qualname__} holds itself; use a dataclass or a pydantic model."
            )
        return _annotated[cls, AttrsClass(tp, around)]
    if typing.is_typeddict(tp) and sys.version_info < (3, 12):
        hints = typing.get_type_hints(tp, include_extras=True)
        return _record(tp, {key: (hint, key in tp.__required_keys__) for key, hint in hints.items()}, around)
    origin, arguments = typing.get_origin(tp), typing.get_args(tp)
    if origin is None or origin is typing.Literal or not arguments:
        return tp
    if origin is typing.Annotated:
        parts = (portable(arguments[0], around), *tp.__metadata__)
        return _annotated[parts]
    rewritten = tuple(portable(argument, around) for argument in arguments)
    if rewritten == arguments:
        return tp
    if origin is typing.Union or origin is types.UnionType:
        return _union[rewritten]
    return origin[rewritten]


class AttrsClass:
    """How pydantic reads an attrs class: a record of its fields, handed to the class.

    Args:
        tp: the class, or one with arguments for its type variables.
        around: the attrs classes that it stands in.
    """

    def __init__(self, tp: Any, around: tuple[Any, ...]) -> None:
        cls = typing.get_origin(tp) or tp
        hints = _hints(cls, tp)
        missing = [one.name for one in cls.__attrs_attrs__ if one.init and one.name not in hints]
        if missing:
            raise InvalidType(f"the field {missing[0]} of {cls.__qualname__} has no annotation; give it one.")
        fields = {
            one.alias: (hints[one.name], not _has_default(one)) for one in cls.__attrs_attrs__ if one.init
        }
        self._cls, self._record = cls, _record(cls, fields, (*around, tp))

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_after_validator_function(self._made, handler.generate_schema(self._record))

    def _made(self, fields: dict[str, Any]) -> Any:
        try:
            return self._cls(**fields)
        except TypeError as error:  # so do validators of attrs refuse a value
            raise ValueError(*error.args[:1]) from error


def _hints(cls: Any, tp: Any) -> dict[str, Any]:
    """The annotations of a class, with what its and its parents' type variables stand for."""
    given: dict[Any, dict[Any, Any]] = {}
    todo: list[tuple[Any, dict[Any, Any]]] = [(tp, {})]
    while todo:
        part, around = todo.pop()
        owner, arguments = typing.get_origin(part) or part, typing.get_args(part)
        known = dict(zip(getattr(owner, "__parameters__", ()), [_filled(one, around) for one in arguments]))
        given.setdefault(owner, known)
        todo += [(one, known) for one in owner.__dict__.get("__orig_bases__", owner.__bases__)]
    made = {}
    for name, hint in typing.get_type_hints(cls, include_extras=True).items():
        owner = next(one for one in cls.__mro__ if name in inspect.get_annotations(one))
        made[name] = _filled(hint, given[owner])
    return made


def _filled(hint: Any, given: dict[Any, Any]) -> Any:
    """An annotation with types in the place of its type variables."""
    if isinstance(hint, typing.TypeVar):
        return given.get(hint, hint)
    inside = getattr(hint, "__parameters__", ())
    return hint[tuple(given.get(one, one) for one in inside)] if given and inside else hint


def _has_default(field: Any) -> bool:
    return type(field.default).__name__ != "_Nothing"


def _record(tp: Any, fields: dict[str, tuple[Any, bool]], around: tuple[Any, ...]) -> Any:
    """A typed dictionary of fields: (type, required) by name."""
    typed = {
        name: portable(hint, around) if required else typing_extensions.NotRequired[portable(hint, around)]
        for name, (hint, required) in fields.items()
    }
    made = _typed_dict(tp.__name__, typed)
    made.__module__, made.__doc__ = tp.__module__, tp.__doc__
    return made
