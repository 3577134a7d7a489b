"""Regular expressions, lists of choices and free text as grammars.

Invariant: a pattern describes the whole text, as `re.fullmatch` reads it, unless another dialect is asked
for.
"""

from __future__ import annotations

import enum
import re
import typing
from collections.abc import Iterable
from typing import Any, Literal

from tokenform import _core
from tokenform.errors import InvalidRegex, OptionError, UnsatisfiableGrammar, UnsupportedRegex
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.unicode import check_text

_FLAGS = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"), (re.VERBOSE, "x"))


def regex(
    pattern: str | re.Pattern[str], *, dialect: Literal["python", "ecma", "rust", "auto"] = "python"
) -> Grammar:
    r"""The texts that match a pattern.

    Classes are those of the dialect: in "python", `\d`, `\w` and `\s` are Unicode's (`\d` takes "٣" too); in
    "ecma", `\d` is `[0-9]` and `\w` `[A-Za-z0-9_]`.  Write `[0-9]` where other digits are not wanted.

    Example:
        >>> vocabulary = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256])
        >>> automaton = tf.regex("[0-9]{4}").compile(vocabulary)
        >>> automaton.matches(b"4821"), automaton.matches(b"48")
        (True, False)

    Args:
        pattern: text, or a compiled pattern, whose flags count.
        dialect: "python", as `re.fullmatch` reads it; or, for texts that have a match anywhere, "ecma"
            (ECMA-262 with the `u` flag), "rust" (Rust's `regex`) or "auto", as JSON Schema's `pattern` is
            read: ECMA-262, and what that refuses as others read it, which `Grammar.report` then says.
    Raises:
        InvalidRegex: `column` is the place of the mistake.
        UnsupportedRegex: backreferences and whatever else is not regular.
        UnsatisfiableGrammar: nothing matches.
    """
    if isinstance(pattern, re.Pattern):
        if not isinstance(pattern.pattern, str):
            raise InvalidRegex("a pattern over bytes can't constrain text; compile it from a str.")
        if pattern.flags & (re.ASCII | re.LOCALE):
            raise UnsupportedRegex("the flags ASCII and LOCALE are not supported; write the classes out.")
        flags = "".join(letter for flag, letter in _FLAGS if pattern.flags & flag)
        pattern = f"(?{flags}){pattern.pattern}" if flags else pattern.pattern
    if not isinstance(pattern, str):
        raise InvalidRegex(f"a pattern is a str or a compiled pattern, not {type(pattern).__name__}.")
    if dialect not in ("python", "ecma", "rust", "auto"):
        raise OptionError(f"dialect={dialect!r} is not known; choose 'python', 'ecma', 'rust' or 'auto'.")
    check_text(pattern, InvalidRegex)
    form = {"language": {"regex": pattern, "dialect": dialect}}
    return Grammar(_core.regex(pattern, dialect=dialect), form=form, source=pattern)


def choice(texts: Iterable[str], *more: str) -> Grammar:
    """Exactly one of the given texts: a list of them, or each as an argument.

    Raises:
        OptionError: an entry is not a str.
        UnsatisfiableGrammar: there are none.
    """
    listed: list[Any] = [texts, *more] if isinstance(texts, str) or more else _listed(texts)
    for text in listed:
        if not isinstance(text, str):
            kind = type(text).__name__
            remedy = (
                f"schema={kind} writes a member of it"
                if isinstance(text, enum.Enum)
                else "give str of each, or schema=typing.Literal[...] for the values themselves"
            )
            raise OptionError(f"choices are str, but {text!r} is {kind}; {remedy}.")
        check_text(text, OptionError)
    if not listed:
        raise UnsatisfiableGrammar("there is no choice to write; give at least one text.")
    form = {"language": {"words": listed}}
    return Grammar(_core.choice(listed), form=form, source=" | ".join(repr(text) for text in listed))


def _listed(texts: Any) -> list[Any]:
    if typing.get_origin(texts) is not None:
        raise OptionError(f"choices is a list of str, but {texts} is a type; give it as schema=.")
    if not isinstance(texts, Iterable):
        raise OptionError(f"choices is a list of str, not {type(texts).__name__}.")
    return list(texts)


def any_text() -> Grammar:
    """Every text of valid UTF-8: the constraint of a call that asks for none."""
    return regex(r"(?s).*")
