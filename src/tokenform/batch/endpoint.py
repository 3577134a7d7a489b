"""Texts from a server that speaks OpenAI's protocol: vLLM with the plug-in, this library's, or a hosted one.

Purpose: in the place of a model in `Generate`.
Invariant: a text is given back only if this engine accepts it: a server that does not know the constraint, or
loosens it, is asked again, and then the row is refused.  What the server's state explains (not there, no
right, too many requests for too long) ends the job, which goes on later; what the row explains is the row's.
Rejected: asking again for what came out wrong with words about the mistake (another prompt is another
distribution).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tokenform.errors import ModelError, OptionError, SamplingError, TokenformError, extras
from tokenform.frontends import Grammar, any_text, json_schema
from tokenform.frontends.byte_vocabulary import byte_vocabulary


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible server.

    Attributes:
        url: up to and with the version: "http://127.0.0.1:8000/v1".
        model: its name there; None is the first that the server lists.
        key_variable: the environment variable that holds the key where it is asked; keys do not travel.
        concurrency: most requests that are under way from one process.
        retries: of a request that failed by no fault of the row, with growing pauses, or the server's.
        tries: texts that are asked for until one is valid.
        timeout: seconds for one request.
        extra: members of every request's body, as `{"chat_template_kwargs": {"enable_thinking": False}}`.
    Raises:
        OptionError: an argument has a value that it can't have.
    """

    url: str
    model: str | None = None
    key_variable: str = "OPENAI_API_KEY"
    concurrency: int = 16
    retries: int = 6
    tries: int = 3
    timeout: float = 600.0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise OptionError(f"{self.url!r} is no URL; give one as http://127.0.0.1:8000/v1.")
        if self.concurrency < 1 or self.tries < 1 or self.retries < 0 or not self.timeout > 0:
            raise OptionError(
                "concurrency and tries must be at least 1, retries at least 0, timeout above 0."
            )

    def __hash__(self) -> int:
        return hash((self.url, self.model))

    def __str__(self) -> str:
        return f"{self.url} {self.model or ''}".rstrip()

    def open_writer(self) -> EndpointWriter:
        """What writes, in this process.

        Raises:
            MissingExtra: the client isn't installed.
        """
        return EndpointWriter(self)


@dataclass(frozen=True)
class ServedText:
    """A text of a server, with what `Result` has of it."""

    text: str
    tokens: Sequence[int]
    logprob: float | None = None
    reason: str = "end"
    reasoning: str | None = None

    @property
    def cut(self) -> list[str]:
        """What the budget made, as `Result.cut`; a server does not say which values."""
        return [""] if self.reason == "length" else []


class EndpointWriter:
    """The client of one process; it may be used by several threads."""

    def __init__(self, endpoint: Endpoint) -> None:
        with extras():
            import openai
        self._openai, self._endpoint = openai, endpoint
        self._client = openai.OpenAI(
            base_url=endpoint.url,
            api_key=os.environ.get(endpoint.key_variable, "none"),
            max_retries=endpoint.retries,
            timeout=endpoint.timeout,
        )
        self._model = endpoint.model
        self._naming = threading.Lock()

    def sample(
        self,
        prompts: Sequence[Any],
        constraints: Sequence[Any],
        *,
        seed: Sequence[int],
        max_tokens: int,
        temperature: float = 0.0,
        top_p: float = 1.0,
        **_: Any,
    ) -> list[list[ServedText | TokenformError]]:
        """A text for each prompt, as `Generator.sample` with on_error="return" gives them."""
        drawing = {"max_tokens": max_tokens, "temperature": temperature, "top_p": top_p}

        def one(number: int) -> list[ServedText | TokenformError]:
            try:
                return [self._text(prompts[number], constraints[number], seed[number], drawing)]
            except ModelError:
                raise
            except TokenformError as error:
                return [error]

        with ThreadPoolExecutor(min(len(prompts), self._endpoint.concurrency)) as pool:
            return list(pool.map(one, range(len(prompts))))

    def _text(self, prompt: Any, constraint: Any, seed: int, drawing: Mapping[str, Any]) -> ServedText:
        if not isinstance(constraint, Grammar):
            raise OptionError("a server can't enforce a predicate; give a grammar, schema or type.")
        members, judge = request_members(constraint), judge_of(constraint)
        wrong = ""
        for attempt in range(self._endpoint.tries):
            body = {**drawing, **members, "seed": (seed + attempt) % (1 << 31)}
            written = self._answer(prompt, body)
            wrong = _fault(judge, written.text, written.reason)
            if not wrong:
                return written
        raise SamplingError(f"{self._endpoint} wrote no valid text in {self._endpoint.tries} tries: {wrong}.")

    def _answer(self, prompt: Any, body: dict[str, Any]) -> ServedText:
        openai = self._openai
        messages: Any = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        sampling = {name: body.pop(name) for name in ("max_tokens", "temperature", "top_p", "seed")}
        try:
            answer = self._client.chat.completions.create(
                model=self._name(), messages=messages, **sampling, extra_body={**body, **self._endpoint.extra}
            )
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            raise SamplingError(f"{self._endpoint} refuses the row: {_said(error)}.") from error
        except openai.APIError as error:
            raise ModelError(f"{self._endpoint} can't be used: {_said(error)}.") from error
        if not answer.choices:
            raise SamplingError(f"{self._endpoint} gave no text.")
        tokens = 0 if answer.usage is None else answer.usage.completion_tokens
        (choice, *_), message = answer.choices, answer.choices[0].message
        thought = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
        reason = "length" if choice.finish_reason == "length" else "end"
        return ServedText(message.content or "", range(tokens), reason=reason, reasoning=thought)

    def _name(self) -> str:
        with self._naming:
            if self._model is None:
                try:
                    self._model = next(iter(self._client.models.list())).id
                except StopIteration:
                    raise ModelError(f"{self._endpoint} lists no model; name one.") from None
                except self._openai.APIError as error:
                    raise ModelError(f"{self._endpoint} can't be used: {_said(error)}.") from error
            return self._model


def request_members(grammar: Grammar) -> dict[str, Any]:
    """The members of a request's body that ask for texts of the grammar.

    Schemas stand where OpenAI has them; patterns, choices and grammars (as GBNF) where vLLM has them.
    """
    if grammar.schema is not None:
        named = {"name": "answer", "schema": grammar.schema, "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    if grammar.form == any_text().form:
        return {}
    language = grammar.form.get("language", {})
    if "words" in language:
        return {"structured_outputs": {"choice": language["words"]}}
    if "regex" in language:
        return {"structured_outputs": {"regex": language["regex"]}}
    return {"structured_outputs": {"grammar": grammar.to_gbnf()}}


def judge_of(grammar: Grammar) -> Grammar:
    """The grammar of the texts that are right, whoever wrote them: a schema's documents in any spelling."""
    if grammar.schema is None:
        return grammar
    options = grammar.form.get("options") or {}
    spelling = {name: options[name] for name in ("formats", "additional", "unsupported") if name in options}
    return json_schema(
        grammar.schema, order="any", whitespace="any", numbers="any", strings="any", **spelling
    )


def _fault(grammar: Grammar, text: str, reason: str) -> str:
    """What is wrong with a text, or nothing."""
    verdict = grammar.compile(byte_vocabulary()).check(text.strip().encode("utf-8", "replace"))
    if verdict is None:
        return ""
    if reason == "length":
        return "it was cut at max_tokens"
    offset, expected, _ = verdict
    return f"byte {offset} of {text[:60]!r} is not {' or '.join(expected) or 'the end'}"


def _said(error: Any) -> str:
    return (str(getattr(error, "message", "") or error).strip() or type(error).__name__).rstrip(".")
