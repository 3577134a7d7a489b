"""Prompts: text, chat messages or token ids, made into the ids that the model reads.

Purpose: one reader that knows the tokenizer and the model's own prompt format, if it has one.  With a chat
template, a text becomes a user's message, after a line about the form of the answer (`instructions`).
Invariant: a prompt is never cut; one that does not fit is refused before anything runs.  Chat messages are
rendered as they are: nothing is added unless an option says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tokenform.decoding.instructions import completed, instruction, lead_in
from tokenform.decoding.reason import Reason
from tokenform.engine import Grammar, Vocabulary, tokenizers
from tokenform.errors import ModelError, OptionError, PromptTooLong, TokenformError
from tokenform.frontends import Condition

Prompt = str | Sequence[Mapping[str, Any]] | Sequence[int]
"""One prompt: text, chat messages, or token ids."""

ONLY_TEXT = (
    "Only text is read here: for images and sound give them to the model's processor, and its own generate a "
    "tokenform.integrations.transformers.GrammarLogitsProcessor."
)
PromptFormat = Callable[[Any, Grammar | Condition], str]
ShowSchema = bool | Literal["auto"]


@dataclass(frozen=True)
class PromptOptions:
    """How prompts are shown to the model.

    Attributes:
        raw: texts go to the model as they are, without its chat template or its own format.
        system: a system message before the prompt.
        show_schema: "auto" puts a line about the form of the answer before a text; True shows the JSON
            Schema, pattern or grammar, before chat messages too; False adds nothing.
    """

    raw: bool = False
    system: str | None = None
    show_schema: ShowSchema = "auto"

    def __post_init__(self) -> None:
        if self.show_schema not in (True, False, "auto"):
            raise OptionError(f'show_schema={self.show_schema!r} is not known; choose True, False or "auto".')
        if self.system is not None and not isinstance(self.system, str):
            raise OptionError(f"system= is a text, not {type(self.system).__name__}.")
        if self.raw and (self.system is not None or self.show_schema is True):
            raise OptionError("raw=True shows the model the text alone; leave out system= and show_schema=.")


@dataclass(frozen=True)
class Framed:
    """A prompt with options of its own, in place of the generator's."""

    prompt: Any
    options: PromptOptions

    def __str__(self) -> str:
        return str(self.prompt)


@dataclass(frozen=True)
class ReadPrompt:
    """What the model read: printed, it is the text with the template's markers.

    Attributes:
        ids: its tokens.
    """

    ids: tuple[int, ...]
    _decode: Callable[[Sequence[int]], str] = field(repr=False, compare=False)

    @property
    def text(self) -> str:
        """The tokens as text."""
        return self._decode(self.ids)

    def __str__(self) -> str:
        return self.text


def is_batch(prompt: Any) -> bool:
    """Whether this is a list of prompts: not text, not chat messages, not token ids."""
    if isinstance(prompt, str | Framed):
        return False
    if not isinstance(prompt, Sequence):
        raise _no_prompt(prompt)
    return not all(isinstance(part, int | Mapping) for part in prompt) or not prompt


class PromptReader:
    """Turns prompts into ids.

    Args:
        tokenizer: a tokenizer, or None where prompts are ids.
        vocabulary: bounds the ids, and has the token for an empty prompt.
        context: most tokens that the model can read and write together; None for any number.
        write: for models with a prompt format of their own: (text or messages, grammar) -> the model's text.
        chat_options: arguments of the chat template.
        options: the defaults of how prompts are shown.
    """

    def __init__(
        self,
        tokenizer: Any,
        vocabulary: Vocabulary,
        context: int | None,
        write: PromptFormat | None = None,
        chat_options: Mapping[str, Any] | None = None,
        options: PromptOptions | None = None,
    ) -> None:
        self.options = options or PromptOptions()
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._context = context
        self._write = write
        self.chat_options = dict(chat_options or {})

    @property
    def own_format(self) -> bool:
        """Whether the model has a prompt format of its own."""
        return self._write is not None

    def read(
        self,
        prompt: Prompt | Framed,
        grammar: Grammar | Condition,
        chat_options: Mapping[str, Any] | None = None,
        reason: Reason | None = None,
    ) -> list[int]:
        """The ids of a prompt, at least one.

        Args:
            chat_options: arguments of the chat template; None: the reader's own.
            reason: how the model is to reason before its answer, for the instruction of a chat.
        Raises:
            PromptTooLong: not a single token would be left for the text.
            OptionError, ModelError: it can't be read with this tokenizer.
        """
        options = self.options
        if isinstance(prompt, Framed):
            options, prompt = prompt.options, prompt.prompt
        if not isinstance(prompt, Sequence) or isinstance(prompt, bytes | bytearray):
            raise _no_prompt(prompt)
        if isinstance(prompt, str):
            _check_characters(prompt)
        template_options = self.chat_options if chat_options is None else chat_options
        ids = self._ids(prompt, grammar, options, template_options, reason) or [self._beginning()]
        if self._context is not None and len(ids) >= self._context:
            raise PromptTooLong(
                f"the prompt has {len(ids)} tokens, but the model reads and writes {self._context} at most; "
                "shorten it."
            )
        return ids

    def lead_in(self, prompt: Prompt | Framed, grammar: Grammar | Condition) -> list[int]:
        """The ids with which the model's turn begins, before its answer; only after texts that have an
        instruction."""
        options = self.options
        if isinstance(prompt, Framed):
            options, prompt = prompt.options, prompt.prompt
        has_instruction = isinstance(prompt, str) and not options.raw and options.show_schema
        if not has_instruction or not self.has_chat_template:
            return []
        text = lead_in(grammar)
        return tokenizers.encode(self._tokenizer, text, specials=False) if text else []

    @property
    def has_chat_template(self) -> bool:
        """Whether the tokenizer writes chat messages, and no other format is set."""
        return self._write is None and bool(getattr(self._tokenizer, "chat_template", None))

    def token_budget(self, ids: Sequence[int], max_tokens: int) -> int:
        """Tokens that may be written after the prompt."""
        return max_tokens if self._context is None else min(max_tokens, self._context - len(ids))

    def shown(self, ids: Sequence[int]) -> ReadPrompt:
        """The ids as what the model read."""
        return ReadPrompt(tuple(ids), self._decoded)

    def _decoded(self, ids: Sequence[int]) -> str:
        decode = getattr(self._tokenizer, "decode", None)
        if decode is not None:
            return str(decode(list(ids)))
        return b"".join(self._vocabulary.token(token) for token in ids).decode("utf-8", "replace")

    def _ids(
        self,
        prompt: Prompt,
        grammar: Grammar | Condition,
        options: PromptOptions,
        chat_options: Mapping[str, Any],
        reason: Reason | None,
    ) -> list[int]:
        if not isinstance(prompt, str) and all(isinstance(part, int) for part in prompt):
            size = self._vocabulary.size
            ids = [int(token) for token in prompt]  # type: ignore[arg-type]
            for token in ids:
                if not 0 <= token < size:
                    raise OptionError(f"the prompt has the id {token}, but the vocabulary has {size} ids.")
            return ids
        if not isinstance(prompt, str):
            _check_parts(prompt)
        if self._tokenizer is None:
            raise OptionError("this generator has no tokenizer, only a vocabulary; give token ids.")
        bare = isinstance(prompt, str) and (options.raw or not (self.own_format or self.has_chat_template))
        if isinstance(prompt, str) and bare:
            if not options.raw and (options.system is not None or options.show_schema is True):
                raise ModelError(
                    "this tokenizer has no chat template; put into the text what the model has to read."
                )
            return tokenizers.encode(self._tokenizer, prompt)
        if self._write is not None:
            framed = prompt if options.system is None else _messages(prompt, options.system, "")
            return tokenizers.encode(self._tokenizer, self._write(framed, grammar), specials=False)
        return self._chat(_shown(prompt, grammar, options, reason), grammar.tools, chat_options)

    def messages(self, prompt: Prompt | Framed, grammar: Grammar | Condition) -> list[Any] | None:
        """The chat messages of a prompt, with everything that is added to them; None: it is no chat."""
        options = prompt.options if isinstance(prompt, Framed) else self.options
        inner = prompt.prompt if isinstance(prompt, Framed) else prompt
        if not self.has_chat_template or (isinstance(inner, str) and options.raw):
            return None
        return _shown(inner, grammar, options)

    def _chat(
        self, messages: Sequence[Any], tools: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> list[int]:
        render = getattr(self._tokenizer, "apply_chat_template", None)
        if render is None:
            raise ModelError("this tokenizer has no chat template; give the prompt as text.")

        def rendered(messages: list[Any], tools: Sequence[Mapping[str, Any]]) -> list[int]:
            shown: dict[str, Any] = {"tools": list(tools)} if tools else {}
            shown |= options
            return [*render(messages, add_generation_prompt=True, tokenize=True, return_dict=False, **shown)]

        try:
            ids = completed(rendered, messages, tools)
        except (ImportError, TokenformError):
            raise
        except Exception as error:  # a template is a program and may raise anything
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise ModelError(f"the tokenizer can't write these chat messages: {reason}.") from error
        return [int(token) for token in ids]

    def _beginning(self) -> int:
        begin = getattr(self._tokenizer, "bos_token_id", None)
        return int(begin) if isinstance(begin, int) else int(self._vocabulary.eos[0])


class Prompted:
    """The prompt methods of every kind of generator."""

    _prompts: PromptReader

    @property
    def own_format(self) -> bool:
        """Whether the model has a prompt format of its own, in place of a chat template."""
        return self._prompts.own_format

    def shown(self, ids: Sequence[int]) -> ReadPrompt:
        """The ids as what the model read."""
        return self._prompts.shown(ids)

    def framed(
        self, prompts: Sequence[Any], raw: bool | None, system: str | None, show_schema: ShowSchema | None
    ) -> list[Any]:
        """Prompts with the options of their call; see `Generator.sample`."""
        if raw is None and system is None and show_schema is None:
            return list(prompts)
        settings = {"raw": raw, "system": system, "show_schema": show_schema}
        changed = {name: value for name, value in settings.items() if value is not None}
        # the call's options override the generator's, even where the two exclude each other
        base = PromptOptions() if raw else replace(self._prompts.options, raw=False)
        options = replace(base, **changed)  # type: ignore[arg-type]
        return [one if isinstance(one, Framed) else Framed(one, options) for one in prompts]


def passages(prompt: Prompt | Framed) -> tuple[str, ...]:
    """The texts that a prompt brings: the prompt, or what its messages say but for the system's and the
    model's own; none of token ids."""
    inner: Any = prompt.prompt if isinstance(prompt, Framed) else prompt
    if isinstance(inner, str):
        return (inner,)
    texts = []
    for one in inner:
        if isinstance(one, Mapping) and one["role"] not in ("system", "developer", "assistant"):
            content = one.get("content")
            parts = content if isinstance(content, list | tuple) else [content]
            texts += [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return tuple(text.encode(errors="replace").decode() for text in texts if isinstance(text, str))


def _shown(
    prompt: Any, grammar: Grammar | Condition, options: PromptOptions, reason: Reason | None = None
) -> list[Any]:
    """Chat messages with the system message and the instruction of the options."""
    show = options.show_schema if isinstance(prompt, str) else options.show_schema is True
    words = instruction(grammar, show)
    return _messages(prompt, options.system, words if reason is None else reason.instruction(words))


def _messages(prompt: Any, system: str | None, words: str) -> list[Any]:
    """Chat messages, with a system message before them and `words` before the user's last one."""
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    if system is not None:
        if any(one["role"] == "system" for one in messages):
            raise OptionError("the messages have a system message; leave out system=.")
        messages = [{"role": "system", "content": system}, *messages]
    if words:
        last = max((i for i, one in enumerate(messages) if one["role"] == "user"), default=None)
        if last is None:
            return [*messages, {"role": "user", "content": words}]
        content: Any = messages[last].get("content")
        if isinstance(content, list | tuple):
            content = [{"type": "text", "text": f"{words}\n\n"}, *content]
        else:
            content = f"{words}\n\n{content}"
        messages[last] = {**messages[last], "content": content}
    return messages


def _check_parts(messages: Sequence[Any]) -> None:
    """Refuses what is no chat message, and parts that are no text: a template would write a placeholder
    without an image."""
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise OptionError(
                f'message {number} has no role; a chat message is {{"role": "user", "content": "..."}}.'
            )
        content = message.get("content")
        for part in content if isinstance(content, list | tuple) else ():
            kind = part.get("type", "text") if isinstance(part, Mapping) else "text"
            if kind != "text":
                raise OptionError(f"message {number} has a part of the type {kind!r}.  {ONLY_TEXT}")


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise OptionError(
            f"the prompt's character {error.start} is half of a surrogate pair, which no tokenizer reads; "
            'decode its bytes with errors="replace".'
        ) from None


def _no_prompt(prompt: Any) -> OptionError:
    what = f"a prompt is text, chat messages or token ids, not {type(prompt).__name__}."
    return OptionError(what + (f"  {ONLY_TEXT}" if _is_media(prompt) else ""))


def _is_media(prompt: Any) -> bool:
    """Whether this is an image, sound or the like: pixels, samples or bytes."""
    return isinstance(prompt, bytes | bytearray) or any(
        hasattr(prompt, name) for name in ("shape", "getpixel", "pixel_values")
    )
