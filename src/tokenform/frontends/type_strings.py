"""Strings inside types: they are names at most, never programs.

Purpose: pydantic runs a string that stands for a type (`list["..."]`, a `ForwardRef`, the bound of a type
variable) as Python code.  A caller may have that string from anywhere, so it is looked for before pydantic
sees the type.
Invariant: after `check_strings` only these strings of the type are still run: what a `class`, `def` or `type`
statement says, which is a program already; and the text of a `TypeAliasType` where it is made of names of the
alias's own module (`"list[Tree] | None"`), without calls and private names.
Rejected: resolving the strings here (the module that they belong to is known for an alias alone, and there
pydantic knows it too).
Complexity: linear in the type's parts, at most `MOST` of them.
"""

from __future__ import annotations

import ast
import typing
from collections.abc import Iterator
from typing import Any

import typing_extensions

from tokenform.errors import InvalidType, LimitExceeded

MOST = 20_000  # parts of a type that are looked at
_LONGEST = 10_000  # characters of an alias's text
_NAMES = (
    ast.Expression,
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.BinOp,
    ast.BitOr,
    ast.UnaryOp,
    ast.USub,
    ast.Load,
)


def check_strings(tp: Any, label: str) -> None:
    """Refuses a type that holds a string which would be run.

    Raises:
        InvalidType: it holds one.
        LimitExceeded: it has more than `MOST` parts.
    """
    todo: list[tuple[Any, bool]] = [(tp, False)]
    seen: dict[int, Any] = {}  # holds what it names, so that no number comes twice
    while todo:
        part, of_alias = todo.pop()
        if isinstance(part, str | typing.ForwardRef):
            text = part if isinstance(part, str) else part.__forward_arg__
            if not (of_alias and _only_names(text)):
                raise InvalidType(_refusal(text, part is tp, label))
        elif id(part) not in seen:
            seen[id(part)] = part
            if len(seen) > MOST:
                raise LimitExceeded(f"{label} has more than {MOST} parts; name inner parts as classes.")
            alias = isinstance(part, typing_extensions.TypeAliasType)
            todo.extend((child, of_alias or alias) for child in _parts(part, label))


def _parts(tp: Any, label: str) -> Iterator[Any]:
    """What a type is put together from; classes are whole."""
    if isinstance(tp, list | tuple):  # the arguments of a Callable
        yield from tp
        return
    origin = typing.get_origin(tp)
    if origin is typing.Literal or origin is typing_extensions.Literal:
        return
    if origin is typing.Annotated:
        yield tp.__origin__
        return
    yield from typing.get_args(tp)
    if isinstance(origin, typing_extensions.TypeAliasType):
        yield origin
    if isinstance(tp, typing_extensions.TypeAliasType):
        try:
            yield tp.__value__
        except Exception as error:  # a `type` statement runs here
            raise InvalidType(f"the alias {tp.__name__} in {label} can't be read: {error}.") from error
    if isinstance(tp, typing.TypeVar | typing_extensions.TypeVar):
        yield from (tp.__bound__, *tp.__constraints__, getattr(tp, "__default__", None))
    if isinstance(tp, typing.NewType):
        yield tp.__supertype__


def _only_names(text: str) -> bool:
    """Whether a text is an expression of names, subscripts and `|`."""
    if len(text) > _LONGEST:
        return False
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    literals = {
        id(node)
        for literal in ast.walk(tree)
        if isinstance(literal, ast.Subscript) and ast.unparse(literal.value).split(".")[-1] == "Literal"
        for node in ast.walk(literal.slice)
    }
    return all(
        isinstance(node, _NAMES)
        and not (isinstance(node, ast.Attribute) and node.attr.startswith("_"))
        and (id(node) in literals or not _text(node) or _only_names(_text(node)))
        for node in ast.walk(tree)
    )


def _text(node: ast.AST) -> str:
    """The string that a node is, else nothing."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _refusal(text: str, alone: bool, label: str) -> str:
    shown = repr(text if len(text) <= 40 else text[:37] + "...")
    if alone:
        return (
            f"{shown} is a string, not a type, and strings are never run; pass the type itself, or a JSON "
            "Schema's text to json_schema."
        )
    return (
        f"{label} holds the string {shown} in place of a type, and strings are never run; write the type "
        "itself, or name it in the annotations of a class."
    )
