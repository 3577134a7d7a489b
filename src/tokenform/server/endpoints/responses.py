"""`POST /v1/responses`, as OpenAI's API has it; nothing is stored, so a request has its whole conversation.

Source: OpenAI's API reference, "Responses".
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from tokenform.decoding.results import Result
from tokenform.decoding.scheduler import Piece
from tokenform.server.answering import ApiPath, Event, Work
from tokenform.server.endpoints.common import extras_of, finish, probabilities, thought_tokens
from tokenform.server.endpoints.items import ItemStep, OutputItem, items_of, steps_of
from tokenform.server.engine import Engine
from tokenform.server.faults import Refused, check_names
from tokenform.server.fields import Constrained, StreamSettings
from tokenform.server.keys import Key
from tokenform.server.messages import read_arguments, read_message, text_of
from tokenform.server.reading import text_request
from tokenform.server.text_request import TextRequest
from tokenform.server.thinking import read_thinking

_LOGPROBS = "message.output_text.logprobs"


def _nothing_stored(value: Any) -> Any:
    if value is None or value is False:
        return value
    advice = "nothing is stored here: send the whole conversation as input, and wait for the answer"
    raise PydanticCustomError("nothing_stored", advice)


class ResponsesBody(Constrained):
    """What is known of a request's body."""

    input: str | list[Any]
    instructions: str | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    n: Literal[1] | None = None
    text: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    include: list[str] | None = None
    stream_options: StreamSettings | None = None
    reasoning: dict[str, Any] | None = None
    thinking_token_budget: Annotated[int, Field(ge=0)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    background: Annotated[Literal[False] | None, BeforeValidator(_nothing_stored)] = None
    previous_response_id: Annotated[Literal[None], BeforeValidator(_nothing_stored)] = None
    conversation: Annotated[Literal[None], BeforeValidator(_nothing_stored)] = None


class Responses(ApiPath):
    """The endpoint."""

    name, path, prefix, reads = "responses", "/v1/responses", "resp_", ResponsesBody

    def request_of(self, body: ResponsesBody, engine: Engine, key: Key) -> TextRequest:
        text = body.text or {}
        check_names(text, ("format", "verbosity"), "/text")
        effort = (body.reasoning or {}).get("effort")
        with_logprobs = bool(body.top_logprobs) or _LOGPROBS in (body.include or ())
        return text_request(
            body,
            engine,
            key,
            _messages(body),
            form=text.get("format"),
            form_place="/text/format",
            tools=body.tools,
            tool_choice=body.tool_choice,
            parallel=body.parallel_tool_calls,
            max_tokens=body.max_output_tokens,
            alternatives=(body.top_logprobs or 0) if with_logprobs else None,
            thought=read_thinking(effort, body.thinking_token_budget, "/reasoning/effort"),
        )

    def whole(self, work: Work, results: list[Result]) -> dict[str, Any]:
        result = results[0]
        output = [_item(item) for item in items_of(work, result)]
        return _response(work, "completed", _finished(work, output, result), result)

    async def events(self, work: Work, pieces: AsyncIterator[Piece]) -> AsyncIterator[Event]:
        number = -1

        def event(kind: str, **members: Any) -> Event:
            nonlocal number
            number += 1
            return kind, {"type": kind, "sequence_number": number, **members}

        started = _response(work, "in_progress", [])
        yield event("response.created", response=started)
        yield event("response.in_progress", response=started)
        output: list[dict[str, Any]] = []
        heard = _Probabilities(work)
        async for step, piece in steps_of(work, pieces):
            heard.hear(piece)
            if step is not None:
                status = "completed"
                if step.item.cut or (piece.result is not None and _ends_incomplete(step.item, piece.result)):
                    status = "incomplete"
                for kind, members in _events(step, status, heard):
                    yield event(kind, output_index=step.place, **members)
                if step.last:
                    output.append(_item(step.item, status))
            elif piece.result is not None:
                whole = _response(work, "completed", _finished(work, output, piece.result), piece.result)
                yield event(f"response.{whole['status']}", response=whole)

    def places(self, body: ResponsesBody) -> dict[str, str]:
        return {"/max_tokens": "/max_output_tokens", "/messages": "/input"}

    def fault(self, error: Refused, number: int) -> Event:
        body = {"type": "error", "sequence_number": number, "code": error.code, "param": error.param}
        return "error", {**body, "message": str(error)}


class _Probabilities:
    """`logprobs` of a stream: each event of text has those of the tokens since the one before.

    Attributes:
        all: those of all tokens so far.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._last_piece: Piece | None = None
        self.all: list[dict[str, Any]] = []
        self._told = 0

    def hear(self, piece: Piece) -> None:
        """The tokens of a piece, which comes with each of its steps."""
        if self._work.request.alternatives is None or piece is self._last_piece or piece.thought:
            return
        self._last_piece = piece
        self.all += probabilities(self._work.engine, piece.tokens, piece.logprobs, piece.likeliest)

    def new(self) -> list[dict[str, Any]]:
        """Those that no event has had."""
        told, self._told = self._told, len(self.all)
        return self.all[told:]


def _finished(work: Work, output: list[dict[str, Any]], result: Result) -> list[dict[str, Any]]:
    """The items of a whole answer, with what is known at its end."""
    messages = [item for item in output if item["type"] == "message"]
    if work.request.alternatives is not None:
        listed = probabilities(work.engine, result.tokens, result.token_logprobs, result.likeliest)
        for item in messages:
            item["content"][0]["logprobs"] = listed
    if messages and messages[-1] is output[-1] and finish(result) == "length":
        messages[-1]["status"] = "incomplete"
    return output


def _ends_incomplete(item: OutputItem, result: Result) -> bool:
    """Whether an item that ends with the text is a message that the budget ended."""
    return item.name is None and not item.thought and finish(result) == "length"


def _events(step: ItemStep, status: str, heard: _Probabilities) -> list[tuple[str, dict[str, Any]]]:
    item, place = step.item, {"item_id": _id(step.item)}
    if item.name is not None:
        kind = "custom_tool_call_input" if item.custom else "function_call_arguments"
        if step.first:
            return [("response.output_item.added", {"item": _item(item, "in_progress")})]
        if step.last and item.cut:
            return [("response.output_item.done", {"item": _item(item, "incomplete")})]
        if step.last:
            whole = {"input" if item.custom else "arguments": item.text}
            named = {} if item.custom else {"name": item.name}
            return [
                (f"response.{kind}.done", {**place, **named, **whole}),
                ("response.output_item.done", {"item": _item(item)}),
            ]
        return [(f"response.{kind}.delta", {**place, "delta": step.delta})]
    if item.thought:
        return _thought_events(step, place)
    inside = {**place, "content_index": 0}
    if step.first:
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        empty = _item(item, "in_progress") | {"content": []}
        return [
            ("response.output_item.added", {"item": empty}),
            ("response.content_part.added", {**inside, "part": part}),
        ]
    logprobs = heard.new()
    delta = ("response.output_text.delta", {**inside, "delta": step.delta, "logprobs": logprobs})
    if not step.last:
        return [delta]
    ended = _item(item, status)
    (part,) = ended["content"]
    part["logprobs"] = list(heard.all)
    return [
        *([delta] if logprobs else []),  # tokens without text, such as the one that ends it
        ("response.output_text.done", {**inside, "text": item.text, "logprobs": part["logprobs"]}),
        ("response.content_part.done", {**inside, "part": part}),
        ("response.output_item.done", {"item": ended}),
    ]


def _thought_events(step: ItemStep, place: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    inside = {**place, "content_index": 0}
    if step.first:
        return [("response.output_item.added", {"item": _item(step.item, "in_progress")})]
    if step.last:
        return [
            ("response.reasoning_text.done", {**inside, "text": step.item.text}),
            ("response.output_item.done", {"item": _item(step.item)}),
        ]
    return [("response.reasoning_text.delta", {**inside, "delta": step.delta})]


def _id(item: OutputItem) -> str:
    """The item's id, which its events have as `item_id`; a call's own id is another one."""
    return item.id if item.name is None else f"{'ctc' if item.custom else 'fc'}_{item.id}"


def _item(item: OutputItem, status: str = "completed") -> dict[str, Any]:
    """An item as the API has it."""
    if item.thought:
        parts = [{"type": "reasoning_text", "text": item.text}] if status == "completed" else []
        return {"id": item.id, "type": "reasoning", "status": status, "summary": [], "content": parts}
    if item.name is None:
        part = {"type": "output_text", "text": item.text, "annotations": [], "logprobs": []}
        head = {"id": item.id, "type": "message", "status": status, "role": "assistant"}
        return {**head, "content": [part]}
    if item.custom:
        head = {"id": _id(item), "type": "custom_tool_call", "status": status, "call_id": item.id}
        return {**head, "name": item.name, "input": "" if status == "in_progress" else item.text}
    head = {"id": _id(item), "type": "function_call", "status": status, "call_id": item.id}
    return {**head, "name": item.name, "arguments": "" if status == "in_progress" else item.text}


def _response(
    work: Work, status: str, output: list[dict[str, Any]], result: Result | None = None
) -> dict[str, Any]:
    body: ResponsesBody = work.body
    usage = None
    if result is not None:
        thought = thought_tokens(result)
        prompt, count = work.job.prompt_tokens, len(result.tokens) + thought
        usage = {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": count,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": prompt + count,
        }
        if finish(result) == "length":
            status = "incomplete"
    response = {
        "id": work.id,
        "object": "response",
        "created_at": work.began,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "model": work.engine.name,
        "output": output,
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": {"effort": (body.reasoning or {}).get("effort"), "summary": None},
        "store": False,
        "temperature": body.temperature,
        "text": body.text or {"format": {"type": "text"}},
        "tool_choice": body.tool_choice or "auto",
        "tools": body.tools or [],
        "top_p": body.top_p,
        "truncation": "disabled",
        "metadata": body.metadata or {},
    }
    optional = {"usage": usage, "user": body.user}  # the API omits these and allows no null
    response |= {name: value for name, value in optional.items() if value is not None}
    return response | ({} if result is None else extras_of(work, result))


def _messages(body: ResponsesBody) -> list[dict[str, Any]]:
    """The conversation as chat messages."""
    messages: list[dict[str, Any]] = []
    if body.instructions:
        messages.append({"role": "system", "content": body.instructions})
    if isinstance(body.input, str):
        return [*messages, {"role": "user", "content": body.input}]
    for place, item in enumerate(body.input):
        message = _message(item, f"/input/{place}")
        if message is None:
            continue
        last = messages[-1] if messages else {}
        if message.get("tool_calls") and last.get("role") == "assistant":
            last["tool_calls"] = [*last.get("tool_calls", ()), *message["tool_calls"]]
        else:
            messages.append(message)
    if not messages:
        raise Refused("there is no input.", param="/input")
    return messages


def _message(item: Any, param: str) -> dict[str, Any] | None:
    kind = item.get("type", "message") if isinstance(item, dict) else None
    if kind == "message":
        return read_message(item, param)
    if kind in ("function_call", "custom_tool_call"):
        arguments = {"input": item.get("input")}
        if kind == "function_call":
            arguments = read_arguments(item.get("arguments"), f"{param}/arguments")
        function = {"name": item.get("name"), "arguments": arguments}
        call = {"id": item.get("call_id", ""), "type": "function", "function": function}
        return {"role": "assistant", "content": "", "tool_calls": [call]}
    if kind in ("function_call_output", "custom_tool_call_output"):
        content = text_of(item.get("output"), f"{param}/output")
        return {"role": "tool", "tool_call_id": item.get("call_id", ""), "content": content}
    if kind == "reasoning":
        return None
    raise Refused(f"{param} is of the type {kind!r}, which is not read here.", param=f"{param}/type")
