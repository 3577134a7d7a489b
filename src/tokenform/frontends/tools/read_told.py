"""Who hears of a call while it is read, and what parts of it are read with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tokenform.frontends.tools.layout import Format, Wire
from tokenform.frontends.tools.source import Reading, Source
from tokenform.frontends.tools.tool import Tool


class CallReport(Protocol):
    """Who is told of a call as it is read."""

    def begin(self, tool: Tool, id: str) -> None: ...
    def fragment(self, text: str) -> None: ...
    def finish(self) -> None: ...


class Nobody:
    """Is told nothing: the text is only passed over."""

    def begin(self, tool: Tool, id: str) -> None: ...
    def fragment(self, text: str) -> None: ...
    def finish(self) -> None: ...


class Literals(Protocol):
    """The reader of a call (`read_call.CallReader`), as the readers of its arguments use it."""

    form: Format
    source: Source

    def fragment(self, text: str) -> None: ...
    def tokens(self, literal: str) -> tuple[str, ...]: ...
    def literal(self, text: str, wire: Wire | None = None) -> Reading[None]: ...
    def try_literal(self, text: str) -> Reading[bool]: ...
    def object(self, emit: Callable[[str], None]) -> Reading[None]: ...
