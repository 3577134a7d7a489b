"""`POST /v1/chat/completions`, as OpenAI's API has it, with vLLM's constraints.

Source: OpenAI's API reference, "Chat".
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from pydantic import Field

from tokenform.decoding.results import Result
from tokenform.decoding.scheduler import Piece
from tokenform.server.answering import ApiPath, Event, Work
from tokenform.server.endpoints.common import extras_of, finish, head_of, probabilities, usage_of
from tokenform.server.endpoints.items import ItemStep, OutputItem, Writer, items_of
from tokenform.server.engine import Engine
from tokenform.server.faults import Refused
from tokenform.server.fields import Constrained, StreamSettings
from tokenform.server.keys import Key
from tokenform.server.messages import read_messages
from tokenform.server.reading import text_request
from tokenform.server.text_request import TextRequest
from tokenform.server.thinking import read_thinking


class ChatBody(Constrained):
    """What is known of a request's body."""

    messages: list[Any]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    response_format: Any = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    reasoning_effort: str | None = None
    thinking_token_budget: Annotated[int, Field(ge=0)] | None = None
    stream_options: StreamSettings | None = None


class Chat(ApiPath):
    """The endpoint."""

    name, path, prefix, reads = "chat", "/v1/chat/completions", "chatcmpl-", ChatBody

    def request_of(self, body: ChatBody, engine: Engine, key: Key) -> TextRequest:
        prompt = read_messages(body.messages)
        if body.max_tokens is not None and body.max_completion_tokens is not None:
            raise Refused("give max_completion_tokens or max_tokens, not both.", param="/max_tokens")
        if body.top_logprobs and not body.logprobs:
            raise Refused("top_logprobs needs logprobs to be true.", param="/top_logprobs")
        return text_request(
            body,
            engine,
            key,
            prompt,
            form=body.response_format,
            tools=body.tools,
            tool_choice=body.tool_choice,
            parallel=body.parallel_tool_calls,
            max_tokens=body.max_tokens or body.max_completion_tokens,
            alternatives=(body.top_logprobs or 0) if body.logprobs else None,
            thought=read_thinking(body.reasoning_effort, body.thinking_token_budget, "/reasoning_effort"),
        )

    def places(self, body: ChatBody) -> dict[str, str]:
        return {} if body.max_completion_tokens is None else {"/max_tokens": "/max_completion_tokens"}

    def whole(self, work: Work, results: list[Result]) -> dict[str, Any]:
        choices = [self._choice(work, number, result) for number, result in enumerate(results)]
        return {**head_of(work, "chat.completion"), "choices": choices, "usage": usage_of(work, results)}

    def _choice(self, work: Work, number: int, result: Result) -> dict[str, Any]:
        content: str | None = result.text
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        reason = finish(result)
        if result.reasoning is not None:
            message["reasoning_content"] = result.reasoning
        if work.request.turn is not None:
            items = items_of(work, result)
            calls = [_called(item) for item in items if item.name is not None]
            texts = [item.text for item in items if item.name is None and not item.thought]
            message["content"] = "".join(texts) if texts else None
            if calls:
                message["tool_calls"] = calls
                reason = "length" if reason == "length" else "tool_calls"
        logprobs = None
        if work.request.alternatives is not None:
            listed = probabilities(work.engine, result.tokens, result.token_logprobs, result.likeliest)
            logprobs = {"content": listed, "refusal": None}
        choice = {"index": number, "message": message, "logprobs": logprobs, "finish_reason": reason}
        return choice | extras_of(work, result)

    async def events(self, work: Work, pieces: AsyncIterator[Piece]) -> AsyncIterator[Event]:
        head, turn = head_of(work, "chat.completion.chunk"), work.request.turn
        stream_settings: StreamSettings = work.body.stream_options or StreamSettings()
        blank: dict[str, Any] = {"usage": None} if stream_settings.include_usage else {}

        def chunk(number: int, delta: dict[str, Any], **more: Any) -> Event:
            choice = {"index": number, "delta": delta, "logprobs": None, "finish_reason": None, **more}
            return None, {**head, "choices": [choice], **blank}

        for number in range(work.request.n):
            yield chunk(number, {"role": "assistant", "content": "", "refusal": None})
        writers = [Writer(turn) for _ in range(work.request.n)]
        output_tokens = 0
        async for piece in pieces:
            number, result = piece.number, piece.result
            writer = writers[number]
            deltas = [delta for step in writer.read(piece) for delta in _deltas(step, writer)]
            more: dict[str, Any] = {}
            if work.request.alternatives is not None and piece.tokens and not piece.thought:
                listed = probabilities(work.engine, piece.tokens, piece.logprobs, piece.likeliest)
                more["logprobs"] = {"content": listed, "refusal": None}
                deltas = deltas or [{}]
            if stream_settings.continuous_usage_stats:
                output_tokens += len(piece.tokens)
                prompt = work.job.prompt_tokens
                counts = {"prompt_tokens": prompt, "completion_tokens": output_tokens}
                blank["usage"] = {**counts, "total_tokens": prompt + output_tokens}
            for delta in deltas:
                yield chunk(number, delta, **more)
                more = {}
            if result is not None:
                called = any(item.name is not None for item in writer.items)
                reason = "tool_calls" if called and finish(result) == "stop" else finish(result)
                yield chunk(number, {}, finish_reason=reason, **extras_of(work, result))
        if stream_settings.include_usage:
            yield None, {**head, "choices": [], "usage": usage_of(work, work.job.result(0))}
        yield None, "[DONE]"


def _called(item: OutputItem) -> dict[str, Any]:
    if item.custom:
        return {"id": item.id, "type": "custom", "custom": {"name": item.name, "input": item.text}}
    return {"id": item.id, "type": "function", "function": {"name": item.name, "arguments": item.text}}


def _deltas(step: ItemStep, writer: Writer) -> list[dict[str, Any]]:
    """A step as a chunk has it."""
    item = step.item
    if item.name is None:
        return [{"reasoning_content" if item.thought else "content": step.delta}] if step.delta else []
    index = sum(one.name is not None for one in writer.items[: step.place])
    if item.custom:
        custom = {"name": item.name, "input": step.delta}
        entry = {"index": index, "id": item.id, "type": "custom", "custom": custom}
        return [] if step.first or step.last else [{"tool_calls": [entry]}]
    if step.first:
        function = {"name": item.name, "arguments": ""}
        return [{"tool_calls": [{"index": index, "id": item.id, "type": "function", "function": function}]}]
    if step.last:
        return []
    return [{"tool_calls": [{"index": index, "function": {"arguments": step.delta}}]}]
