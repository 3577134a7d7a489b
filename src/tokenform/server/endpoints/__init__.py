"""The addresses of the APIs, a file each."""

from __future__ import annotations

from tokenform.server.endpoints.chat import Chat
from tokenform.server.endpoints.completions import Completions

ENDPOINTS = (Chat(), Completions())
