"""The format that a caller means: by its name, by a tokenizer, by a response template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.detect import detect_format
from tokenform.frontends.tools.formats import named
from tokenform.frontends.tools.layout import Format
from tokenform.frontends.tools.response_template import response_format


def find_format(name: Any) -> Format:
    """The format of this name, of a tokenizer, or of its `response_template` or `response_schema`.

    Of a tokenizer the chat template is asked first, then its response template.
    Raises:
        ToolError: there is no such format (the message has the names), or the templates show none.
    """
    if isinstance(name, Mapping):
        return response_format(name)
    if isinstance(name, str | Format) or not hasattr(name, "chat_template"):
        return named(name)
    try:
        return detect_format(name)
    except ToolError:
        told = (getattr(name, key, None) for key in ("response_template", "response_schema"))
        template = next((said for said in told if isinstance(said, Mapping)), None)
        if template is None:
            raise
        added: Mapping[str, int] = getattr(name, "get_added_vocab", dict)()
        return response_format(template, added)
