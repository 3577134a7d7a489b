"""The value of a text that is still being written: of a type, of a schema's document, of tool calls.

Invariant: the values are those of `json_reader` (complete fields, growing strings, lists and objects), the
last one is what the grammar makes of the whole text.  The text is read once.
Complexity: linear in the text, and the containers that are open are copied for each value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from tokenform.errors import InvalidType, OptionError
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.json_pointer import pointer_of
from tokenform.frontends.json_reader import MISSING, JsonReader
from tokenform.frontends.tools.calls import ToolCall, ToolCalls
from tokenform.frontends.tools.stream import ToolCallStream

OnValue = Callable[[str, Any], None]


class PartialValue(Protocol):
    """Reads a text piece by piece."""

    def feed(self, text: str) -> None: ...

    def finish(self) -> None: ...

    def value(self) -> Any:
        """The value so far; `MISSING` where nothing is known yet."""
        ...

    def last(self, value: Any) -> Any:
        """The value of the whole text, after `finish`: a call has the id that it had before."""
        ...


class Fields:
    """Functions that get the values of fields, by JSON Pointer; `*` stands for any one key or number."""

    def __init__(self, functions: Mapping[str, Callable[[Any], Any]] | None = None) -> None:
        self._functions: list[tuple[re.Pattern[str], Callable[[Any], Any]]] = []
        for pointer, function in (functions or {}).items():
            self.add(pointer, function)

    def add(self, pointer: str, function: Callable[[Any], Any]) -> None:
        """One more.

        Raises:
            OptionError: it is no JSON Pointer.
        """
        if pointer and not pointer.startswith("/"):
            raise OptionError(
                f"{pointer!r} is no JSON Pointer; it begins with a slash, as in '/items/0/price'."
            )
        parts = ["[^/]*" if part == "*" else re.escape(part) for part in pointer.split("/")]
        self._functions.append((re.compile("/".join(parts)), function))

    def tell(self, pointer: str, value: Any) -> None:
        """A value is complete."""
        for pattern, function in self._functions:
            if pattern.fullmatch(pointer):
                function(value)

    def __bool__(self) -> bool:
        return bool(self._functions)


def partial_value(grammar: Any, on_value: OnValue) -> PartialValue:
    """The reader of a grammar's texts; `on_value` gets the pointer and the value of each complete field.

    Raises:
        OptionError: its texts are neither documents nor tool calls.
    """
    if isinstance(grammar, Grammar):
        if grammar.shapes is not None:
            return Document(grammar.shapes.typed(), on_value)
        if "schema" in grammar.form:
            return Document(None, on_value)
        reads = grammar.tool_reader
        if reads is not None:
            return Calls(reads, on_value)
    raise OptionError(
        "partial values are those of JSON documents, types and tool calls; stream the text instead."
    )


class Document:
    """A JSON document."""

    def __init__(self, shape: Any, on_value: OnValue) -> None:
        self._reader = JsonReader(shape, lambda path, value, start, end: on_value(pointer_of(path), value))
        self._text: list[str] = []

    def feed(self, text: str) -> None:
        self._text.append(text)
        try:
            self._reader.feed(text)
        except InvalidType as error:
            error.text, error.partial = "".join(self._text), self._reader.value() or None
            raise

    def finish(self) -> None:
        self._reader.finish()

    def value(self) -> Any:
        return self._reader.value()

    def last(self, value: Any) -> Any:
        return value


class Calls:
    """The calls of a turn, each with the arguments so far; content and reasoning beside them.

    Args:
        reads: how they are read: the arguments of `ToolCallStream`.
    """

    def __init__(self, reads: Mapping[str, Any], on_value: OnValue) -> None:
        self._stream, self._on_value = ToolCallStream(**reads), on_value
        self._done: list[ToolCall] = []
        self._open: tuple[str, str, JsonReader] | None = None
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._ended = False

    def feed(self, text: str) -> None:
        self._take(self._stream.feed(text))

    def finish(self) -> None:
        self._take(self._stream.close())
        self._ended = True

    def value(self) -> Any:
        if self._ended:
            return self._stream.result
        calls = [*self._done]
        if self._open is not None:
            calls.append(self._call())
        content, reasoning = "".join(self._content) or None, "".join(self._reasoning) or None
        return ToolCalls(calls, content, reasoning)

    def last(self, value: Any) -> Any:
        known = [*self._done] if self._open is None else [*self._done, self._call()]
        calls = [replace(call, id=before.id) for call, before in zip(value, known)]
        return ToolCalls(calls, value.content, value.reasoning)

    def _call(self) -> ToolCall:
        assert self._open is not None
        name, number, reader = self._open
        return ToolCall(name, reader.value() or {}, number)

    def _take(self, deltas: list[dict[str, Any]]) -> None:
        for delta in deltas:
            self._content.append(delta.get("content") or "")
            self._reasoning.append(delta.get("reasoning_content") or "")
            for one in delta.get("tool_calls", ()):
                if "id" in one:
                    self._begin(one["function"]["name"], one["id"])
                if self._open is not None and one["function"].get("arguments"):
                    self._open[2].feed(one["function"]["arguments"])

    def _begin(self, name: str, number: str) -> None:
        if self._open is not None:
            self._done.append(self._call())
        place = f"/{len(self._done)}"
        self._on_value(f"{place}/name", name)
        reader = JsonReader(
            on_value=lambda path, value, start, end: self._on_value(
                f"{place}/arguments{pointer_of(path)}", value
            )
        )
        self._open = (name, number, reader)


__all__ = ["MISSING", "Fields", "PartialValue", "partial_value"]
