"""`POST /v1/messages`, as Anthropic's API has it, with this server's constraints beside it.

Source: Anthropic's API reference, "Messages".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from tokenform.decoding.results import Result
from tokenform.decoding.scheduler import Piece
from tokenform.decoding.thinking import Thinking
from tokenform.server.answering import ApiPath, Event, Work
from tokenform.server.endpoints.common import extras_of, finish, thought_tokens
from tokenform.server.endpoints.items import ItemStep, OutputItem, items_of, steps_of
from tokenform.server.engine import Engine
from tokenform.server.faults import Refused, check_names
from tokenform.server.fields import Constrained
from tokenform.server.keys import Key
from tokenform.server.messages import text_of
from tokenform.server.reading import text_request
from tokenform.server.text_request import TextRequest
from tokenform.server.thinking import RequestedThought, read_thinking

_KINDS = {
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
_TOOL = (
    *("name", "description", "input_schema", "type", "strict", "cache_control", "input_examples"),
    *("defer_loading", "eager_input_streaming", "allowed_callers"),
)
_THOUGHTS = ("thinking", "redacted_thinking")


class CountedBody(Constrained):
    """What is known of the body of a request that counts tokens."""

    messages: list[Any]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    n: None = None
    system: str | list[Any] | None = None
    stop_sequences: list[str] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
    output_format: dict[str, Any] | None = None
    cache_control: dict[str, Any] | None = None


class MessagesBody(CountedBody):
    """What is known of a request's body."""

    max_tokens: Annotated[int, Field(ge=1)]


class Messages(ApiPath):
    """The endpoint."""

    name, path, prefix = "messages", "/v1/messages", "msg_"
    reads: type[CountedBody] = MessagesBody

    def request_of(self, body: CountedBody, engine: Engine, key: Key) -> TextRequest:
        config = dict(body.output_config or {})
        check_names(config, ("format", "effort"), "/output_config")
        form, place = config.get("format"), "/output_config/format"
        if form is None:
            form, place = body.output_format, "/output_format"
        choice, parallel = _choice(body.tool_choice)
        tools = [_tool(tool, f"/tools/{i}") for i, tool in enumerate(body.tools or ())]
        if body.stop is not None and body.stop_sequences is not None:
            raise Refused("give stop_sequences or stop, not both.", param="/stop")
        if body.stop_sequences is not None:
            body.stop = body.stop_sequences
        return text_request(
            body,
            engine,
            key,
            _messages(body),
            form=form,
            form_place=place,
            tools=tools,
            tool_choice=choice,
            parallel=parallel,
            max_tokens=body.max_tokens,
            thought=_requested_thought(body.thinking, config.get("effort")),
        )

    def places(self, body: CountedBody) -> dict[str, str]:
        tools = {
            f"/tools/{i}/function/parameters": f"/tools/{i}/input_schema"
            for i in range(len(body.tools or ()))
        }
        return tools if body.stop_sequences is None else {**tools, "/stop": "/stop_sequences"}

    def whole(self, work: Work, results: list[Result]) -> dict[str, Any]:
        result = results[0]
        items = items_of(work, result)
        head = _head(work, [_block(item) for item in items], _usage(work, result))
        return {**head, **_ended(result, items)} | extras_of(work, result)

    async def events(self, work: Work, pieces: AsyncIterator[Piece]) -> AsyncIterator[Event]:
        yield _event("message_start", message=_head(work, [], _usage(work)))
        items: list[OutputItem] = []
        async for step, piece in steps_of(work, pieces):
            if step is None:
                if piece.result is not None:
                    delta = {**_ended(piece.result, items), "stop_details": None, "container": None}
                    usage = _usage(work, piece.result)
                    more = extras_of(work, piece.result)
                    yield _event("message_delta", delta=delta, usage=usage, **more)
                continue
            if step.first:
                items.append(step.item)
                block = _block(OutputItem("")) if step.item.name is None else _call(step.item, {})
                if step.item.thought:
                    block = _block(OutputItem("", thought=True))
                yield _event("content_block_start", index=step.place, content_block=block)
            elif step.last:
                yield _event("content_block_stop", index=step.place)
            else:
                yield _event("content_block_delta", index=step.place, delta=_delta(step))
        yield _event("message_stop")

    def failure(self, error: Refused) -> dict[str, Any]:
        body = error.body()["error"]
        kind = _KINDS.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
        return {"type": "error", "error": {**body, "type": kind}, "request_id": None}

    def fault(self, error: Refused, number: int) -> Event:
        return "error", self.failure(error)


def _event(kind: str, **members: Any) -> Event:
    return kind, {"type": kind, **members}


def _head(work: Work, content: list[Any], usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": work.id,
        "type": "message",
        "role": "assistant",
        "model": work.engine.name,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "usage": usage,
    }


def _usage(work: Work, result: Result | None = None) -> dict[str, Any]:
    """Tokens so far; fields that this server does not have are null, as the API requires."""
    output_tokens = 0 if result is None else len(result.tokens) + thought_tokens(result)
    caches = dict.fromkeys(("cache_creation", "cache_creation_input_tokens", "cache_read_input_tokens"))
    others = dict.fromkeys(("inference_geo", "output_tokens_details", "server_tool_use", "service_tier"))
    return {"input_tokens": work.job.prompt_tokens, "output_tokens": output_tokens, **caches, **others}


def _ended(result: Result, items: list[OutputItem]) -> dict[str, Any]:
    """Why the message ended, and at which of the stop sequences."""
    reason = "tool_use" if any(item.name is not None for item in items) else "end_turn"
    if finish(result) == "length":
        reason = "max_tokens"
    elif result.stopped is not None:
        reason = "stop_sequence"
    return {"stop_reason": reason, "stop_sequence": result.stopped}


def _delta(step: ItemStep) -> dict[str, Any]:
    if step.item.thought:
        return {"type": "thinking_delta", "thinking": step.delta}
    if step.item.name is None:
        return {"type": "text_delta", "text": step.delta}
    return {"type": "input_json_delta", "partial_json": step.delta}


def _block(item: OutputItem) -> dict[str, Any]:
    if item.thought:
        return {"type": "thinking", "thinking": item.text, "signature": ""}
    return (
        {"type": "text", "text": item.text, "citations": None}
        if item.name is None
        else _call(item, item.arguments)
    )


def _call(item: OutputItem, arguments: Any) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": item.id,
        "name": item.name,
        "input": arguments,
        "caller": {"type": "direct"},
    }


def _requested_thought(thinking: Mapping[str, Any] | None, effort: Any) -> RequestedThought:
    """The thought of `thinking`, with the effort of `output_config`."""
    if thinking is None:
        read_thinking(effort, None, "/output_config/effort")  # checked only: without `thinking` no effect
        return RequestedThought()
    settings = dict(thinking)
    check_names(settings, ("type", "budget_tokens", "display"), "/thinking")
    kind, tokens = settings.get("type"), settings.get("budget_tokens")
    if kind not in ("enabled", "adaptive", "disabled"):
        raise Refused("/thinking/type is enabled, adaptive or disabled.", param="/thinking/type")
    if tokens is not None and (type(tokens) is not int or tokens < 1):
        raise Refused("/thinking/budget_tokens is a number from 1.", param="/thinking/budget_tokens")
    thought = read_thinking(effort, tokens, "/output_config/effort", "/thinking/budget_tokens")
    if kind == "disabled":
        return RequestedThought("/thinking", Thinking(False))
    return thought if thought.thinking.enabled is not None else read_thinking("high", None, "/thinking")


def _choice(choice: Mapping[str, Any] | None) -> tuple[Any, bool]:
    """The choice as OpenAI's API has it, and whether several calls may come."""
    if choice is None:
        return None, True
    param = "/tool_choice"
    check_names(choice, ("type", "name", "disable_parallel_tool_use"), param)
    kind, parallel = choice.get("type"), not choice.get("disable_parallel_tool_use", False)
    if kind == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}, parallel
    choices = {"auto": "auto", "any": "required", "none": "none"}
    if not isinstance(kind, str) or kind not in choices:
        raise Refused(f"{param}/type {kind!r} is not known.", param=f"{param}/type")
    return choices[kind], parallel


def _tool(tool: Mapping[str, Any], param: str) -> dict[str, Any]:
    """A tool as OpenAI's API has it."""
    if tool.get("type") not in (None, "custom"):
        raise Refused(f"{param}: this server runs no tools itself.", param=f"{param}/type")
    check_names(tool, _TOOL, param)
    function = {"name": tool.get("name"), "parameters": tool.get("input_schema", {"type": "object"})}
    function |= {"description": tool.get("description") or "", "strict": tool.get("strict")}
    return {"type": "function", "function": function}


def _messages(body: CountedBody) -> list[dict[str, Any]]:
    """The conversation as chat messages."""
    messages: list[dict[str, Any]] = []
    if body.system:
        messages.append({"role": "system", "content": text_of(body.system, "/system")})
    if not body.messages:
        raise Refused("there are no messages.", param="/messages")
    for place, message in enumerate(body.messages):
        param = f"/messages/{place}"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("user", "assistant", "system"):
            raise Refused(f"{param}/role is user or assistant.", param=f"{param}/role")
        messages += _split(role, message.get("content"), f"{param}/content")
    return messages


def _split(role: str, content: Any, param: str) -> list[dict[str, Any]]:
    """A message as several: results of tools are messages of their own."""
    if not isinstance(content, list):
        return [{"role": role, "content": text_of(content, param)}]
    texts, calls, answers = [], [], []
    for place, block in enumerate(content):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_use":
            function = {"name": block.get("name"), "arguments": block.get("input") or {}}
            calls.append({"id": block.get("id", ""), "type": "function", "function": function})
        elif kind == "tool_result":
            answer = text_of(block.get("content"), f"{param}/{place}/content")
            answers.append({"role": "tool", "tool_call_id": block.get("tool_use_id", ""), "content": answer})
        elif kind not in _THOUGHTS:
            texts.append(text_of([block], f"{param}/{place}"))
    message: dict[str, Any] = {"role": role, "content": "".join(texts)}
    if calls:
        message["tool_calls"] = calls
    return [*answers, *([message] if texts or calls or not answers else [])]


class CountTokens(Messages):
    """The endpoint."""

    name, path = "count_tokens", "/v1/messages/count_tokens"
    reads = CountedBody

    def body_of_count(self, tokens: int) -> dict[str, Any]:
        """The answer's body."""
        return {"input_tokens": tokens}
