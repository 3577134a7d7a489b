"""`POST /v1/completions`, as OpenAI's API has it: the text continues the prompt.

Source: OpenAI's API reference, "Completions".
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import accumulate
from typing import Annotated, Any, Literal

from pydantic import Field

from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.prompts import Framed, PromptOptions
from tokenform.decoding.results import Result
from tokenform.decoding.scheduler import Piece
from tokenform.decoding.thinking import RAW
from tokenform.server.answering import ApiPath, Event, Work
from tokenform.server.endpoints.common import extras_of, finish, head_of, number, usage_of
from tokenform.server.engine import Engine
from tokenform.server.faults import Refused
from tokenform.server.fields import MOST, Constrained, StreamSettings
from tokenform.server.keys import Key
from tokenform.server.reading import text_request
from tokenform.server.text_request import TextRequest
from tokenform.server.thinking import RequestedThought


class CompletionsBody(Constrained):
    """What is known of a request's body."""

    prompt: str | list[Any]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    response_format: Any = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: Literal[False] | None = None
    best_of: Annotated[int, Field(ge=1)] | None = None
    suffix: Literal[""] | None = None
    stream_options: StreamSettings | None = None


class Completions(ApiPath):
    """The endpoint."""

    name, path, prefix, reads = "completions", "/v1/completions", "cmpl-", CompletionsBody

    def request_of(self, body: CompletionsBody, engine: Engine, key: Key) -> TextRequest:
        if body.best_of not in (None, body.n or 1):
            raise Refused("best_of is not served; ask for n texts, or a sampler.", param="/best_of")
        prompts: list[Any] = _prompts(body.prompt, body.n or 1)
        _check_ids(prompts, engine.generator.vocabulary.size)
        if not engine.generator.own_format:  # this API is of bare text
            prompts = [Framed(prompt, PromptOptions(raw=True)) for prompt in prompts]
        request = text_request(
            body,
            engine,
            key,
            prompts[0],
            form=body.response_format,
            max_tokens=body.max_tokens,
            alternatives=body.logprobs,
        )
        request.further_prompts = prompts[1:]
        if len(prompts) > 1 and isinstance(request.sampler or engine.sampler, AlignedSampler):
            raise Refused("a faithful sampler takes one prompt.", param="/prompt")
        if request.grammar is None:
            request.thought = RequestedThought(thinking=RAW)
            request.max_tokens = request.max_tokens or 16  # as the API has it
        return request

    def places(self, body: CompletionsBody) -> dict[str, str]:
        return {"/messages": "/prompt", "/top_logprobs": "/logprobs"}

    def whole(self, work: Work, results: list[Result]) -> dict[str, Any]:
        choices = []
        for place, result in enumerate(results):
            logprobs = None
            if work.request.alternatives is not None:
                logprobs = _logprobs(work, result.tokens, result.token_logprobs, result.likeliest, 0)
            reason = finish(result)
            choice = {"index": place, "text": result.text, "logprobs": logprobs, "finish_reason": reason}
            if result.reasoning is not None:
                choice["reasoning_content"] = result.reasoning
            choices.append(choice | extras_of(work, result))
        return {**head_of(work, "text_completion"), "choices": choices, "usage": usage_of(work, results)}

    async def events(self, work: Work, pieces: AsyncIterator[Piece]) -> AsyncIterator[Event]:
        head = head_of(work, "text_completion")
        stream_settings: StreamSettings = work.body.stream_options or StreamSettings()
        blank = {"usage": None} if stream_settings.include_usage else {}
        at = [0] * work.request.texts
        async for piece in pieces:
            logprobs = None
            if piece.thought:
                if piece.text:
                    thought = {"index": piece.number, "text": "", "reasoning_content": piece.text}
                    yield None, {**head, "choices": [{**thought, "finish_reason": None}], **blank}
                continue
            if work.request.alternatives is not None:
                logprobs = _logprobs(work, piece.tokens, piece.logprobs, piece.likeliest, at[piece.number])
            at[piece.number] += sum(_begun(work.engine.text(token)) for token in piece.tokens)
            choice: dict[str, Any] = {
                "index": piece.number,
                "text": piece.text,
                "logprobs": logprobs,
                "finish_reason": None if piece.result is None else finish(piece.result),
            }
            if piece.result is not None:
                choice |= extras_of(work, piece.result)
            yield None, {**head, "choices": [choice], **blank}
        if stream_settings.include_usage:
            yield None, {**head, "choices": [], "usage": usage_of(work, work.job.result(0))}
        yield None, "[DONE]"


def _prompts(given: str | list[Any], n: int) -> list[Any]:
    """Texts, or lists of token ids: a prompt alone, or a list of them."""
    if isinstance(given, str) or (given and all(type(one) is int for one in given)):
        return [given]
    if not given:
        raise Refused("/prompt has no tokens.", param="/prompt")
    if len(given) * n > MOST:
        raise Refused(f"a request has up to {MOST} texts; send fewer prompts.", param="/prompt")
    for place, one in enumerate(given):
        if isinstance(one, str):
            continue
        if not isinstance(one, list) or not one or not all(type(token) is int for token in one):
            message = f"/prompt/{place} is no prompt: give a text, or a list of token ids."
            raise Refused(message, param=f"/prompt/{place}")
    return given


def _check_ids(prompts: list[Any], size: int) -> None:
    for place, prompt in enumerate(prompts):
        wrong = [] if isinstance(prompt, str) else [token for token in prompt if not 0 <= token < size]
        if wrong:
            param = "/prompt" if len(prompts) == 1 else f"/prompt/{place}"
            raise Refused(f"{param} has the id {wrong[0]}; ids are below {size}.", param=param)


def _logprobs(work: Work, tokens: Any, logprobs: Any, likeliest: Any, at: int) -> dict[str, Any]:
    """`logprobs`, with the place of each token in characters: of the one that its first byte belongs to."""
    texts = [work.engine.text(token) for token in tokens]
    before = accumulate(map(_begun, texts), initial=at)
    offsets = [begun - (1 if text and not _begun(text[:1]) else 0) for begun, text in zip(before, texts)]
    top_logprobs = [
        {work.engine.text(t).decode("utf-8", "replace"): number(p) for t, p in row} for row in likeliest
    ]
    return {
        "tokens": [text.decode("utf-8", "replace") for text in texts],
        "token_logprobs": [number(one) for one in logprobs],
        "top_logprobs": top_logprobs or [{} for _ in texts],
        "text_offset": offsets,
    }


def _begun(text: bytes) -> int:
    """How many characters begin in these bytes of UTF-8."""
    return sum(byte & 0xC0 != 0x80 for byte in text)
