"""Texts in structural tags: literals, in which control tokens stand as such, and tokens by their names.

Invariant: what is no text of the kind that is asked for is refused by its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from tokenform.errors import InvalidGrammar
from tokenform.frontends.tools.shape import Node, Text, marked


def wrong(message: str, place: str) -> InvalidGrammar:
    """The error for a place in a tag."""
    return InvalidGrammar(f"{message} (in the structural tag at {place!r}).", pointer=place)


class Texts:
    """Reads texts.

    Args:
        special: those of control tokens.
        token_text: the text of a token by its number; None: there are no such names.
    """

    def __init__(
        self, special: tuple[str, ...], token_text: Callable[[int], str | None] | None = None
    ) -> None:
        self.special = special
        self._mark = _mark_of(special)
        self._token_text = token_text

    def literal(self, text: str) -> Node:
        """A text; the control tokens in it as such."""
        return Text(text) if self._mark is None else marked(text, self._mark)

    def opening_token(self, text: str) -> str:
        """The control token that a text begins with; else nothing."""
        found = self._mark and self._mark.match(text)
        return found[0] if found else ""

    def cuts(self, text: str, at: int) -> bool:
        """Whether a control token in a text stands on both sides of a place."""
        marks = self._mark.finditer(text) if self._mark else ()
        return any(mark.start() < at < mark.end() for mark in marks)

    def text(self, value: Any, place: str) -> str:
        """A text, or that of a token."""
        if isinstance(value, Mapping) and value.get("type") == "token":
            return self.named(value.get("token"), place)
        if not isinstance(value, str):
            raise wrong("a text is missing", place)
        return value

    def named(self, token: Any, place: str) -> str:
        """The text of a token by its name or number."""
        if isinstance(token, str) and token:
            return token
        if isinstance(token, int) and not isinstance(token, bool) and self._token_text is not None:
            text = self._token_text(token)
            if text:
                return text
        raise wrong(f"the token {token!r} has no text that is known here", place)

    def tokens(self, spec: Any, name: str, place: str) -> tuple[str, ...]:
        listed = spec.get(name) or []
        if not isinstance(listed, list):
            raise wrong(f"{name} is a list of tokens", place)
        return tuple(self.named(one, f"{place}/{name}") for one in listed)


@lru_cache(maxsize=64)
def _mark_of(special: tuple[str, ...]) -> re.Pattern[str] | None:
    """Any of these texts, the longest where several begin."""
    texts = sorted({text for text in special if text}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, texts))) if texts else None


def str_in(spec: Mapping[str, Any], name: str, place: str) -> str:
    value = spec.get(name)
    if not isinstance(value, str):
        raise wrong(f"{name!r} is a text", place)
    return value


def number_in(spec: Mapping[str, Any], name: str, place: str) -> int | None:
    value = spec.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise wrong(f"{name!r} is a whole number, 0 or more", place)
    return value


def list_in(spec: Mapping[str, Any], name: str, place: str) -> list[Any]:
    value = spec.get(name)
    if not isinstance(value, list):
        raise wrong(f"{name!r} is a list", place)
    return value


def strings_in(spec: Mapping[str, Any], name: str, place: str) -> tuple[str, ...]:
    listed = spec.get(name) or []
    if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
        raise wrong(f"{name!r} is a list of texts", place)
    return tuple(listed)
