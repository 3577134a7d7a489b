"""The addresses of the APIs, a file each."""

from __future__ import annotations

from tokenform.server.answering import ApiPath
from tokenform.server.endpoints.anthropic import CountTokens, Messages
from tokenform.server.endpoints.chat import Chat
from tokenform.server.endpoints.completions import Completions
from tokenform.server.endpoints.responses import Responses

ENDPOINTS: tuple[ApiPath, ...] = (Chat(), Completions(), Responses(), Messages())
COUNTS = (CountTokens(),)
