"""Chat templates, rendered as `transformers` renders them.

Purpose: what a model's own template makes of an earlier call is the layout that the model was trained on.
Invariant: templates run in Jinja's sandbox, with the filters and functions that they may expect.
Complexity: that of the template; it is compiled once.
Source: `transformers`, "Chat templates".
Rejected: `apply_chat_template` (it needs `transformers`, which frontends do without, and tokenizes).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tokenform.errors import ToolError, extras

_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")


class Template:
    """A chat template and the texts of the tokens that it may name.

    Raises:
        ToolError: the text is no template.
    """

    def __init__(self, text: str, tokens: dict[str, str] | None = None) -> None:
        self.text = text
        self._compiled = _compiled(text)
        self.tokens = {**dict.fromkeys(_TOKENS, ""), **(tokens or {})}

    @classmethod
    def of(cls, tokenizer: Any) -> Template:
        """The template of a tokenizer, or a template's text.

        Raises:
            ToolError: there is none.
        """
        text = tokenizer if isinstance(tokenizer, str) else getattr(tokenizer, "chat_template", None)
        if isinstance(text, dict):
            text = text.get("tool_use") or text.get("default") or next(iter(text.values()), None)
        if not isinstance(text, str) or not text:
            raise ToolError(
                "the tokenizer has no chat template to tell the tool format from; name one with format="
            )
        tokens = {name: getattr(tokenizer, name, None) for name in _TOKENS}
        return cls(text, {name: token for name, token in tokens.items() if isinstance(token, str)})

    def render(self, messages: Sequence[Any], tools: Sequence[Any] = (), **more: Any) -> str:
        """The conversation as text.

        Raises:
            ToolError: the template refuses it.
        """
        try:
            values = {"add_generation_prompt": False, "documents": None, **self.tokens, **more}
            return str(self._compiled.render(messages=list(messages), tools=list(tools) or None, **values))
        except Exception as error:  # a template is a program and may raise anything
            raise ToolError(f"the chat template can't write this conversation: {error}") from None


def variables(tokenizer: Any) -> frozenset[str]:
    """The variables that a tokenizer's chat template reads and does not set itself; without one none."""
    text = getattr(tokenizer, "chat_template", None)
    texts = text.values() if isinstance(text, dict) else [text]
    return frozenset().union(*(_variables(one) for one in texts if isinstance(one, str)))


@lru_cache(maxsize=16)
def _variables(text: str) -> frozenset[str]:
    from jinja2 import meta

    try:
        environment = _environment()
        return frozenset(meta.find_undeclared_variables(environment.parse(text)))
    except Exception:  # no template, which its rendering will say
        return frozenset()


@lru_cache(maxsize=16)
def _compiled(text: str) -> Any:
    try:
        return _environment().from_string(text)
    except Exception as error:  # Jinja writes Python of it, which may be too deep, or no Python
        raise ToolError(f"the chat template can't be read: {error}") from None


@lru_cache(maxsize=1)
def _environment() -> Any:
    from datetime import datetime

    with extras():
        import jinja2
        from jinja2 import nodes
        from jinja2.ext import Extension, loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}` marks what the assistant wrote; the text is what stands inside."""

        tags = {"generation"}  # noqa: RUF012 (as Jinja declares it)

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    def tojson(value: Any, ensure_ascii: bool = False, indent: Any = None, **more: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)

    def raise_exception(message: str) -> None:
        raise jinja2.exceptions.TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment
