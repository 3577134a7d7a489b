"""Who hears of a call while it is read."""

from __future__ import annotations

from typing import Protocol

from tokenform.frontends.tools.definitions import Tool


class Report(Protocol):
    """Who is told of a call as it is read."""

    def begin(self, tool: Tool, id: str) -> None: ...
    def fragment(self, text: str) -> None: ...
    def finish(self) -> None: ...


class Nobody:
    """Is told nothing: the text is only passed over."""

    def begin(self, tool: Tool, id: str) -> None: ...
    def fragment(self, text: str) -> None: ...
    def finish(self) -> None: ...
