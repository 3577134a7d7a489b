"""Prompts: text, chat messages or token ids, made into the ids that the model reads.

Purpose: one reader that knows the tokenizer and, for models that want one, the prompt format.
Invariant: a prompt is never cut; one that does not fit is refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tokenform.engine import Grammar, Vocabulary, tokenizers
from tokenform.errors import ModelError, OptionError, PromptTooLong
from tokenform.frontends import Condition

Prompt = str | Sequence[Mapping[str, Any]] | Sequence[int]
"""One prompt: text, chat messages, or token ids."""

ONLY_TEXT = (
    "Only text is read here: for images and sound give them to the model's processor, and its own generate a "
    "tokenform.integrations.transformers.GrammarLogitsProcessor."
)
PromptFormat = Callable[[Any, Grammar | Condition], str]


def is_batch(prompt: Any) -> bool:
    """Whether this is a list of prompts: not text, not chat messages, not token ids."""
    if isinstance(prompt, str):
        return False
    if not isinstance(prompt, Sequence):
        raise _no_prompt(prompt)
    return not all(isinstance(part, int | Mapping) for part in prompt) or not prompt


class PromptReader:
    """Turns prompts into ids.

    Args:
        tokenizer: a tokenizer, or None where prompts are ids.
        vocabulary: bounds the ids, and gives the token that stands for an empty prompt.
        context: most tokens that the model can read and write together; None for any number.
        write: for models with a prompt format of their own: (text or messages, grammar) -> the model's text.
    """

    def __init__(
        self,
        tokenizer: Any,
        vocabulary: Vocabulary,
        context: int | None,
        write: PromptFormat | None = None,
        chat_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._context = context
        self._write = write
        self._chat_options = dict(chat_options or {})

    def read(self, prompt: Prompt, grammar: Grammar | Condition) -> list[int]:
        """The ids of a prompt, at least one.

        Raises:
            PromptTooLong: no room for a single token would be left.
            OptionError, ModelError: it can't be read with this tokenizer.
        """
        if not isinstance(prompt, Sequence) or isinstance(prompt, bytes | bytearray):
            raise _no_prompt(prompt)
        if isinstance(prompt, str):
            _check_characters(prompt)
        ids = self._ids(prompt, grammar) or [self._beginning()]
        if self._context is not None and len(ids) >= self._context:
            raise PromptTooLong(
                f"the prompt has {len(ids)} tokens, but the model reads and writes {self._context} at most; "
                "shorten it."
            )
        return ids

    @property
    def has_chat_template(self) -> bool:
        """Whether the tokenizer writes chat messages, and no other format is set."""
        return self._write is None and bool(getattr(self._tokenizer, "chat_template", None))

    def room(self, ids: Sequence[int], max_tokens: int) -> int:
        """Tokens that may be written after the prompt."""
        return max_tokens if self._context is None else min(max_tokens, self._context - len(ids))

    def _ids(self, prompt: Prompt, grammar: Grammar | Condition) -> list[int]:
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
        if self._write is not None:
            return tokenizers.encode(self._tokenizer, self._write(prompt, grammar), specials=False)
        if isinstance(prompt, str):
            return tokenizers.encode(self._tokenizer, prompt)
        return self._chat(prompt, grammar.tools)

    def _chat(self, messages: Sequence[Any], tools: Sequence[Mapping[str, Any]]) -> list[int]:
        render = getattr(self._tokenizer, "apply_chat_template", None)
        if render is None:
            raise ModelError("this tokenizer has no chat template; give the prompt as text.")
        try:
            shown: dict[str, Any] = {"tools": list(tools)} if tools else {}
            shown |= self._chat_options
            ids = render(
                list(messages), add_generation_prompt=True, tokenize=True, return_dict=False, **shown
            )
        except ImportError:
            raise
        except Exception as error:  # a template is a program and may raise anything
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise ModelError(f"the tokenizer can't write these chat messages: {reason}.") from error
        return [int(token) for token in ids]

    def _beginning(self) -> int:
        begin = getattr(self._tokenizer, "bos_token_id", None)
        return int(begin) if isinstance(begin, int) else int(self._vocabulary.eos[0])


def _check_parts(messages: Sequence[Any]) -> None:
    """Refuses what is no chat message, and parts that are no text: a template would write a placeholder that
    no image stands behind."""
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
