"""`POST /v1/messages/count_tokens`, as Anthropic's API has it: how long the prompt of a message would be.

Source: Anthropic's API reference, "Count tokens in a Message".
"""

from __future__ import annotations

from typing import Any

from tokenform.server.endpoints.anthropic import Counted, Messages


class CountTokens(Messages):
    """The endpoint."""

    name, path = "count_tokens", "/v1/messages/count_tokens"
    reads = Counted

    def counted(self, tokens: int) -> dict[str, Any]:
        """The answer's body."""
        return {"input_tokens": tokens}
