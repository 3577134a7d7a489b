"""Which tool format a model writes, told from its tokenizer.

Purpose: the chat template renders earlier calls in the model's own format, so the format's markers stand in
it.
Invariant: a format is named only if every mark of it occurs; otherwise the caller is asked to name one.
Complexity: one substring search per mark.
Rejected: guessing from the model's name (fine-tunes keep names and change templates).
"""

from __future__ import annotations

from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.formats import FORMATS
from tokenform.frontends.tools.layout import Format


def detect_format(tokenizer: Any) -> Format:
    """The format of a tokenizer's chat template, or of a template's text.

    Args:
        tokenizer: an object with `chat_template` (a text, or texts by name), or the template's text.
    Raises:
        ToolError: no template, or one that bears no known format's marks.
    """
    text = _template(tokenizer)
    # A template spells a line feed as itself or, inside a Jinja string, as \n: both read alike here.
    text = text.replace("\r\n", "\n").replace("\n", "\\n")
    for form in FORMATS.values():
        if not form.template:
            continue
        if all(m in text for m in form.template) and not any(m in text for m in form.template_without):
            return form
    raise ToolError("the chat template shows no known tool format; name one with format=")


def _template(tokenizer: Any) -> str:
    template = tokenizer if isinstance(tokenizer, str) else getattr(tokenizer, "chat_template", None)
    if isinstance(template, dict):
        template = template.get("tool_use") or template.get("default") or "\n".join(template.values())
    if not isinstance(template, str) or not template:
        raise ToolError(
            "the tokenizer has no chat template to tell the tool format from; name one with format="
        )
    return template
