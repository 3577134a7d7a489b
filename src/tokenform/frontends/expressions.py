"""`tf.python`: expressions whose names are those of a scope.

Purpose: a model that writes code invents functions, attributes and arguments.
Invariant: every text compiles without a warning; each of its names is one of the scope, the builtins that are
given or a variable that the text binds around it; attributes are there, and arguments bind to the signature.
Complexity: linear in the names and their parameters, times 4 + 3 for each of `variables`.
Rejected: attributes of results (their types are not known before the text runs).
"""

from __future__ import annotations

import inspect
import keyword
import types
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tokenform.errors import OptionError
from tokenform.frontends.expression_rules import Called, ExpressionRules
from tokenform.frontends.grammar import Grammar, Wording
from tokenform.frontends.lark import from_structure
from tokenform.frontends.names import attributes

BUILTINS = {
    "abs": "x, /", "all": "xs, /", "any": "xs, /", "bool": "x=0, /", "dict": "xs=(), /", "divmod": "x, y, /",
    "enumerate": "iterable, start=0", "filter": "f, xs, /", "float": "x=0, /", "frozenset": "xs=(), /",
    "int": "x=0, /", "isinstance": "x, kind, /", "len": "x, /", "list": "xs=(), /", "map": "f, xs, /, *more",
    "max": "x, /, *more, key=None", "min": "x, /, *more, key=None", "range": "start, stop=0, step=0, /",
    "repr": "x, /", "reversed": "xs, /", "round": "number, ndigits=None", "set": "xs=(), /",
    "sorted": "xs, /, *, key=None, reverse=False", "str": "object=''", "sum": "xs, /, start=0",
    "tuple": "xs=(), /", "zip": "*iterables, strict=False",
}  # fmt: skip
"""Those that read and write nothing, and their parameters (few have a signature that Python tells)."""
_METHODS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    classmethod,
    staticmethod,
)
_ANY = inspect.Signature([inspect.Parameter("values", inspect.Parameter.VAR_POSITIONAL)])


def python(
    scope: Mapping[str, Any] | Iterable[str] = (),
    *,
    builtins: Iterable[str] | bool = True,
    depth: int = 2,
    variables: Iterable[str] = ("x", "i"),
) -> Grammar:
    """One Python expression whose names are those of a scope.

    - names: those of `scope` and `builtins`, and their public attributes (of modules, classes and other
      objects, up to `depth` parts behind the name), as far as they are there now; no modules alone.
    - calls of names and attributes that can be called: positional arguments, then keywords in the order of
      the signature, so that each call binds to it (`inspect.signature`); where Python tells none, or the
      scope has the name alone, any number of positional ones.  No `*` and `**`.
    - numbers, strings of up to 100 characters without backslashes and control characters, True, False, None,
      lists, tuples, dictionaries; indices and slices of names and calls; + - * / // % (no powers), minus
      before names and numbers; one comparison, `in`, `not`, `is None` of names and calls, `and`, `or`,
      `x if y else z`; `[... for x in ... if ...]` and the same as the only argument of a call, and
      `lambda x: ...` as an argument, where `x` is one of `variables` that the scope does not have.
    - brackets stand in one another up to three deep; behind a variable that is bound there, one deep.
    - an expression as a whole begins with no literal, but for a number that is the factor of a name.
    - one blank around operators, and behind `,` and the `:` of dictionaries and lambdas.

    Attributes of results, of variables and of literals are not in the language, nor are f-strings, powers,
    sets and statements.  An expression can still raise errors: types and values are not checked.  For the
    grammar nothing is run, and only attributes of modules and methods are read; whoever evaluates a text
    runs what the names can do, and waits for `sum(range(999999999999))`.

    Args:
        scope: names with their objects, or names alone.
        builtins: True: those that neither read nor write; False: none; or names of them.
        depth: parts of an attribute: 2 for `os.path.join`.
        variables: names that comprehensions and lambdas may bind.
    Raises:
        OptionError: a name is no identifier, a builtin is not known, or depth is no number from 0.
        LimitExceeded: the scope has too many names; give those that are wanted, or a smaller depth.

    >>> import math
    >>> import tokenform as tf
    >>> bytes_only = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256])
    >>> accepts = tf.python({"math": math, "prices": [1, 2]}).compile(bytes_only).matches
    >>> accepts("math.sqrt(sum(prices))"), accepts("math.squareroot(2)"), accepts("sum(values)")
    (True, False, False)
    """
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 0:
        raise OptionError(f"depth={depth!r} is no number of parts; the least is 0.")
    scoped = _scope_values(scope)
    chosen = BUILTINS if builtins is True else {} if builtins is False else dict.fromkeys(builtins)
    unknown = [name for name in chosen if name not in BUILTINS]
    if unknown:
        raise OptionError(f"builtins has {unknown[0]!r}; it may have {', '.join(BUILTINS)}.")
    bound = [_identifier(name) for name in variables]
    values: list[str] = []
    calls: dict[Called, list[str]] = {}
    shown = []
    for name in chosen:
        if name not in scoped:
            values.append(name)
            calls.setdefault(_called(_written(BUILTINS[name])), []).append(name)
    for name, (known, value) in scoped.items():
        signature = _signature(value) if known else _ANY
        shown.append(f"{name}{_plain(signature)}" if known and signature else name)
        for path, shape, bare in _paths(name, value, known, depth):
            if shape is not None:
                calls.setdefault(shape, []).append(path)
            if bare:
                values.append(path)
    free = [name for name in bound if name not in scoped and name not in chosen]
    structure = ExpressionRules(values, calls, free).written()
    words = "Answer with one Python expression that uses only "
    made = from_structure(structure, f"python({', '.join(scoped)})", {})
    if scoped:
        made.told = Wording(f"{words}{', '.join(shown)}.", f"{words}{', '.join(scoped)}.", "```python\n")
    return made


def _scope_values(scope: Any) -> dict[str, tuple[bool, Any]]:
    if isinstance(scope, str) or not isinstance(scope, Iterable):
        raise OptionError(f"a scope is a mapping of names or a list of them, not {type(scope).__name__}.")
    if isinstance(scope, Mapping):
        return {_identifier(name): (True, value) for name, value in scope.items()}
    return {_identifier(name): (False, None) for name in scope}


def _identifier(name: Any) -> str:
    if (
        not isinstance(name, str)
        or not name.isidentifier()
        or keyword.iskeyword(name)
        or unicodedata.normalize("NFKC", name) != name
    ):
        raise OptionError(f"{name!r} is no name of Python.")
    return name


def _paths(
    name: str, value: Any, known: bool, depth: int, within: tuple[int, ...] = ()
) -> Iterable[tuple[str, Called | None, bool]]:
    """The name and its attributes: each with how it is called (None: not at all), and if it is a value."""
    signature = _signature(value) if known else _ANY
    yield name, None if signature is None else _called(signature), not isinstance(value, types.ModuleType)
    if not known or not depth or id(value) in within:
        return
    for one in attributes(value):
        if keyword.iskeyword(one):
            continue
        there, inner = _attribute(value, one)
        if there:
            descend = depth - 1 if isinstance(inner, type | types.ModuleType) else 0
            yield from _paths(f"{name}.{one}", inner, True, descend, (*within, id(value)))
        elif inner is not None:
            yield f"{name}.{one}", None, True


def _attribute(value: Any, name: str) -> tuple[bool, Any]:
    """(whether it can be looked at without running code, the attribute); (False, None): not there yet."""
    if isinstance(value, types.ModuleType):
        return (True, vars(value)[name]) if name in vars(value) else (False, None)
    found = inspect.getattr_static(value, name)
    if isinstance(found, _METHODS):
        return True, getattr(value, name)
    return (True, found) if isinstance(found, type) else (False, found if found is not None else "None")


def _signature(value: Any) -> inspect.Signature | None:
    """None: it can't be called."""
    if not callable(value):
        return None
    try:
        return inspect.signature(value)
    except (ValueError, TypeError):
        return _ANY


class _Word(str):
    """An annotation that was not evaluated, shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _plain(signature: inspect.Signature) -> inspect.Signature:
    def word(value: Any) -> Any:
        return _Word(value) if isinstance(value, str) else value

    parameters = [one.replace(annotation=word(one.annotation)) for one in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=word(signature.return_annotation))


def _written(parameters: str) -> inspect.Signature:
    made: Callable[..., Any] = eval(f"lambda {parameters}: 0", {})  # of the table above
    return inspect.signature(made)


def _called(signature: inspect.Signature) -> Called:
    return tuple(
        (one.name, one.kind.name, one.default is inspect.Parameter.empty)
        for one in signature.parameters.values()
        if one.kind is not inspect.Parameter.VAR_KEYWORD
    )
