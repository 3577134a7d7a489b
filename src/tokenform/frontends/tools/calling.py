"""`tools(…)`: the grammar of a model's turn that may call tools.

Purpose: the public face; what a caller means by its format is found here, and a grammar that was made of the
same definitions and options before is given again (`cache.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Literal, TypedDict, overload

from typing_extensions import Unpack

from tokenform.errors import OptionError
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.schemas import warn_unknown
from tokenform.frontends.tools.cache import TOOLS, WEIGHT, LruCache, text_of
from tokenform.frontends.tools.definitions import ON_BAD_TOOL, ToolLike, in_list
from tokenform.frontends.tools.detect import find_format
from tokenform.frontends.tools.layout import Format
from tokenform.frontends.tools.making import TurnOptions, grammar_of_tools
from tokenform.frontends.tools.mcp import ToolSession, is_session, mcp_tools
from tokenform.frontends.tools.turn import Reasoning

# Grammars, and the reports of reading their tools.
GRAMMARS: LruCache[tuple[Grammar, list[str]]] = LruCache(192 << 20)


class ToolOptions(TypedDict, total=False):
    """The keywords of `tools`, see there."""

    format: Any
    tokenizer: Any
    tool_choice: Any
    parallel: bool | int
    strict: bool
    reasoning: Reasoning
    prompt: str | None
    json_options: Mapping[str, str] | None
    on_bad_tool: Literal["raise", "any", "omit"] | None


@overload
def tools(tools: ToolSession, **options: Unpack[ToolOptions]) -> Awaitable[Grammar]: ...


@overload
def tools(tools: Iterable[ToolLike], **options: Unpack[ToolOptions]) -> Grammar: ...


def tools(
    tools: Any,
    *,
    format: Any = None,
    tokenizer: Any = None,
    tool_choice: Any = "auto",
    parallel: bool | int = True,
    strict: bool = True,
    reasoning: Reasoning = "auto",
    prompt: str | None = None,
    json_options: Mapping[str, str] | None = None,
    on_bad_tool: Literal["raise", "any", "omit"] | None = None,
) -> Any:
    """The grammar of a model's turn that may call tools; `parse` reads a text as `ToolCalls`.

    Args:
        tools: functions, pydantic models or definitions, as OpenAI's API and others have them; or a session
            of the Model Context Protocol, and then the grammar is awaited (`await tf.tools(session, ...)`),
            and each of its calls too (`await call()`).
        format: how the model writes calls: a format's name, or one of `tokenform.tool_formats`.
        tokenizer: in place of a format, the model's tokenizer, whose chat template shows it.
        tool_choice: "auto" (text, calls or both), "required" or "any" (at least one call, no text beside the
            reasoning), "none" (no call), the name of the one tool to call, or an object of OpenAI's API
            ("function", "allowed_tools").
        parallel: several calls in one turn; a number is the most there may be.
        strict: arguments that the schema does not declare are forbidden, unless it speaks of them itself.
        reasoning: "auto": a reasoning block may come first; "open": the prompt has opened it; "none": there
            is none.
        prompt: the prompt as the chat template renders it; with "auto", its end tells whether it has opened
            the reasoning block.
        json_options: how JSON is written: `order`, `whitespace`, `numbers`, `strings` of `json_schema`;
            `unsupported="report"` is `on_bad_tool="any"`.
        on_bad_tool: a tool whose parameters can't be read, or not be kept in this format: "raise" an error
            (the default); let its arguments be "any" JSON object; "omit" the tool.  `report` says which and
            why.  Prompts show the parameters as they were given.
    Raises:
        ToolError, InvalidSchema, InvalidType: a definition can't be read; a name that the format can't write;
            or the tokenizer shows no format.
        UnsupportedSchema: arguments that the format can't keep to their schema.
        OptionError: an option's value; or neither a format nor a tokenizer is given.

    >>> import tokenform as tf
    >>> def weather(city: str) -> str:
    ...     "The weather of a city."
    >>> turn = tf.tools([weather], format="hermes", tool_choice="required")
    >>> result = tf.generate("The weather in Lisbon?", turn, max_tokens=80)
    >>> [call.name for call in result.tool_calls]
    ['weather']
    """
    if (format is None) == (tokenizer is None):
        raise OptionError(
            "give the model's tokenizer=, whose chat template shows how calls are written, or the name of a "
            "format= instead."
        )
    format = tokenizer if format is None else format
    if is_session(tools):
        return _of_session(
            tools,
            format=format,
            tool_choice=tool_choice,
            parallel=parallel,
            strict=strict,
            reasoning=reasoning,
            prompt=prompt,
            json_options=json_options,
            on_bad_tool=on_bad_tool,
        )
    form, spelling = find_format(format), dict(json_options or {})
    bad = _on_bad_tool(on_bad_tool, spelling.pop("unsupported", "refuse"))
    definitions = in_list(tools)
    listed = TOOLS.look(definitions)
    options_text = text_of([tool_choice, parallel, strict, reasoning, prompt, spelling, bad])
    key = None if listed.key is None or options_text is None else (listed.key, options_text, form)
    cached = GRAMMARS.get(key) if key else None
    if cached is None:
        options = TurnOptions(form, tool_choice, parallel, strict, reasoning, prompt, spelling, bad)
        cached = grammar_of_tools(definitions, options, listed)
        if key:
            GRAMMARS.put(key, cached, WEIGHT * listed.size)
    grammar, lines = cached
    warn_unknown(lines)
    return grammar


# `tf.tools.Format`: what `format=` takes for a format of one's own, see `tokenform.tool_formats`
tools.Format = Format  # type: ignore[attr-defined]


async def _of_session(session: ToolSession, **options: Unpack[ToolOptions]) -> Grammar:
    return tools(await mcp_tools(session), **options)


def _on_bad_tool(chosen: Any, unsupported: Any) -> str:
    if unsupported not in ("refuse", "report"):
        raise OptionError(f"json_options: unsupported is 'refuse' or 'report', not {unsupported!r}.")
    if chosen is None:
        return "any" if unsupported == "report" else "raise"
    if chosen not in ON_BAD_TOOL:
        raise OptionError(f"on_bad_tool is one of {', '.join(map(repr, ON_BAD_TOOL))}, not {chosen!r}.")
    return str(chosen)
