"""Reasoning before a text: whether there is any, its budget, and how it is written.

Purpose: `Thoughts` finds in a rendered prompt whether a thought is open, closed or left to the model;
`Preamble` is what is then written before a row's text, with a budget of its own.
Invariant: the constraint binds the text after the thought.  The thought ends within its budget, and leaves as
many tokens as the shortest completion of the text has.  Where it is left to the model, its first tokens
decide: if they begin the opening mark it is a thought, else the text.
Rejected: one grammar for both (a budget of tokens is no property of a language; the thought could take all
but the last few of the text's).  A thought only where a field asks for one: where the template opens it, the
model writes it anyway, into the text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import torch

from tokenform.decoding.pieces import TextPieces
from tokenform.decoding.reason import Readiness, Reason, ends_sentence
from tokenform.engine import Grammar, Limits, TokenAutomaton, Vocabulary, tokenizers
from tokenform.errors import BudgetTooSmall, OptionError, TokenformError
from tokenform.frontends import Condition, any_text
from tokenform.frontends.tools import Marks, find_marks, marks_of_format, thought
from tokenform.frontends.tools.templates import variables
from tokenform.frontends.tools.thoughts import TAIL, opening

SHARE = 3 / 4
"""The largest share of a text's tokens for its thought, where no number is set."""
_SWITCHES = ("enable_thinking", "thinking", "enable_reasoning", "think")
_EFFORTS = ("reasoning_effort", "thinking_effort")
_PROBE = "x"
_UNMARKED = Marks("", "")


class NoThought(OptionError):
    """A thought is requested that this model, or this prompt, can't have."""


@dataclass(frozen=True)
class Thinking:
    """A call's options for the thought before a text.

    Attributes:
        enabled: True: there is one; False: there is none, and the prompt says so; None: the model and its
            template decide.
        max_tokens: most tokens of the thought, marks included; None: as many as its share allows.
        share: the thought's largest share, up to 1, of the tokens that the shortest completion leaves; 0: a
            thought that the prompt has opened is a part of the text.
        effort: the reasoning effort, for templates that have one.
        reason: free-text reasoning of a model without a reasoning block; None: none.
    """

    enabled: bool | None = None
    max_tokens: int | None = None
    share: float = SHARE
    effort: str | None = None
    reason: Reason | None = None


RAW = Thinking(share=0.0)
"""For raw prompts: a thought that the prompt has opened is a part of the text."""


def thinking_of(
    value: Thinking | bool | int | None, chat_options: Mapping[str, Any] | None = None
) -> Thinking:
    """`thinking=` of a call as a value: True, False, a number of tokens, or None, where `chat_options` may
    switch thoughts off."""
    if value is None:
        value = Thinking()
    if isinstance(value, Thinking):
        off = chat_options is not None and any(chat_options.get(name) is False for name in _SWITCHES)
        return replace(value, enabled=False) if off and value.enabled is None else value
    if isinstance(value, bool):
        return Thinking(value)
    if isinstance(value, int) and value > 0:
        return Thinking(True, value)
    raise OptionError(f"thinking={value!r} is not possible; give True, False, a number of tokens, or None.")


def reasoned(
    thinking: Thinking | bool | int | None, reason: Reason | bool | int | None
) -> Thinking | bool | int | None:
    """`thinking=` of a call that may have `reason=` in its place: True, a number of tokens, a `Reason`."""
    if reason is None or reason is False:
        return thinking
    if thinking is not None:
        raise OptionError(
            "thinking= is for models with thoughts of their own, reason= for any; give one of them."
        )
    if not isinstance(reason, Reason):
        reason = Reason() if reason is True else Reason(reason)
    return Thinking(True, reason.max_tokens, reason=reason)


@dataclass(frozen=True)
class Thought:
    """What was written before a text.

    Attributes:
        text: without the marks around it.
        tokens: with them.
        cut: the thought's budget ended it.
    """

    text: str
    tokens: list[int]
    cut: bool = False


class Thoughts:
    """The thoughts of one model.

    Args:
        tokenizer: its tokenizer, or None.
        vocabulary: of its logits.
        spell: bytes as the tokenizer writes them.
    """

    def __init__(self, tokenizer: Any, vocabulary: Vocabulary, spell: Callable[[bytes], list[int]]) -> None:
        self._tokenizer, self._vocabulary, self.spell = tokenizer, vocabulary, spell
        self.format: Any = None  # of the model's turns, where the template does not show it

    @cached_property
    def marks(self) -> Marks | None:
        """The marks around a thought; None: no reasoning block is known for the model."""
        return None if self._tokenizer is None else find_marks(self._tokenizer)

    def reason(self, thinking: Thinking) -> Reason | None:
        """The options of free-text reasoning; None where there is none, or the model has its own block."""
        return thinking.reason if self.marks is None else None

    def options(self, thinking: Thinking) -> dict[str, Any]:
        """The chat template's own switches."""
        if thinking.enabled is None:
            return {}
        known = variables(self._tokenizer)
        switches: dict[str, Any] = {name: thinking.enabled for name in _SWITCHES if name in known}
        effort = thinking.effort if thinking.enabled else "none"
        if effort is not None:
            switches |= {name: effort for name in _EFFORTS if name in known}
        budget = thinking.max_tokens if thinking.enabled else 0
        if "thinking_budget" in known and budget is not None:
            switches["thinking_budget"] = budget
        return switches

    def preamble(
        self, ids: list[int], grammar: Grammar | Condition, thinking: Thinking, limits: Limits | None = None
    ) -> tuple[list[int], PromptPreamble | None]:
        """The prompt to go on from, and the preamble of the text; None: there is none.

        Args:
            ids: of the rendered prompt.
            grammar: of the text.
        Raises:
            NoThought: one is requested, and can't be had.
        """
        reason = self.reason(thinking)
        if reason is not None:
            return ids, PromptPreamble(self, _UNMARKED, True, True, reason.bridge, grammar, limits, reason)
        marks = self._marks(thinking)
        if marks is None or not thinking.share:
            return ids, None
        tail = self._text(ids[-TAIL:])
        place = marks.place(tail)
        if place == "closed":
            if thinking.enabled:
                raise NoThought("the model's template has closed the thought already.")
            closer_last = tail.rstrip().endswith(marks.closer.rstrip())
            return [*ids, *self._ids(self._answer(marks, grammar) if closer_last else "")], None
        if place == "open" and thinking.enabled is False:
            line = "\n" if tail.endswith("\n") else ""
            closed = line + marks.closer + (marks.ending or ("\n\n" if line else ""))
            return [*ids, *self._ids(closed), *self._ids(self._answer(marks, grammar))], None
        in_thought = place == "open" or thinking.enabled is True
        if not in_thought and not (self._turn and tail.rstrip().endswith(self._turn)):
            return ids, None  # by the chat template, the model's turn does not begin here
        answer = self._answer(marks, grammar)
        if not in_thought and thinking.enabled is False:
            instead = answer.removeprefix(marks.begun)
            if not answer and marks.ending:  # an empty block, as templates with a switch write it
                instead = f"{marks.opener}\n\n{marks.closer}{marks.ending}"
            return [*ids, *self._ids(instead)], None
        return ids, PromptPreamble(self, marks, place == "open", in_thought, answer, grammar, limits)

    def _marks(self, thinking: Thinking) -> Marks | None:
        if self.marks is not None or not thinking.enabled:
            return self.marks
        try:
            return marks_of_format(self.format or self._tokenizer)
        except TokenformError as error:
            raise NoThought(f"this model has no known block of thought: {error}") from None

    def _answer(self, marks: Marks, grammar: Grammar | Condition) -> str:
        """The mark before the answer; tool grammars have it themselves."""
        return (marks.begun if grammar.tools else marks.answer) if marks.answer else ""

    def _text(self, ids: Sequence[int]) -> str:
        return b"".join(self._vocabulary.token(token) for token in ids).decode("utf-8", "replace")

    def _ids(self, text: str) -> list[int]:
        return tokenizers.encode(self._tokenizer, text, specials=False) if text else []

    @cached_property
    def _turn(self) -> str:
        """The end of a rendered prompt, without marks of a thought."""
        render = getattr(self._tokenizer, "apply_chat_template", None)
        if render is None or self.marks is None:
            return ""
        messages = [{"role": "user", "content": _PROBE}]
        try:
            begun = str(render(messages, add_generation_prompt=True, tokenize=False))
            bare = str(render(messages, add_generation_prompt=False, tokenize=False))
        except Exception:  # a template is a program and may raise anything
            return ""
        found = begun[len(bare) :] if begun.startswith(bare) else ""
        found = found or begun.rpartition(_PROBE)[2]
        for mark in (self.marks.opener, self.marks.closer):
            found = found.partition(mark.strip())[0]
        return found.strip()


@dataclass(frozen=True)
class PromptPreamble:
    """What is written before the texts of one prompt.

    Attributes:
        opened: the prompt has the opening mark.
        in_thought: there is a thought; else the model's first tokens decide.
        answer: the mark before the text.
        grammar: of the text.
        reason: it is free text, without marks.
    """

    thoughts: Thoughts
    marks: Marks
    opened: bool
    in_thought: bool
    answer: str
    grammar: Grammar | Condition
    limits: Limits | None
    reason: Reason | None = None

    def preamble(self, automaton: TokenAutomaton, budget: int, thinking: Thinking) -> Preamble | None:
        """The preamble of one text; None: it is left to the model, and no tokens are left for it.

        Args:
            automaton, budget: of the text.
        Raises:
            BudgetTooSmall: no thought and text fit into the budget together.
            NoThought: none fits into `thinking.max_tokens`.
        """
        least, most = self._least(), thinking.max_tokens
        if least is not None and most is not None and least > most:
            if not self.in_thought:
                return None
            raise NoThought(f"no thought fits into {most} tokens: the shortest has {least}.")
        text = automaton.distance(automaton.start, budget)
        left = budget - (budget if text is None else text) - len(self.thoughts._ids(self.answer))
        most = min(left if most is None else min(left, most), int(left * thinking.share))
        if least is None or least > most:
            if not self.in_thought:
                return None
            raise self.refused(budget, text, thinking)
        return Preamble(self, self.thoughts._vocabulary, most, automaton)

    def block(self, *, opened: bool) -> Grammar:
        return any_text() if self.reason else thought(self.marks, opened=opened)

    def _least(self) -> int | None:
        """Tokens of the shortest thought; None: it is not known."""
        if self.reason:
            return 1
        whole = self.block(opened=self.opened).compile(self.thoughts._vocabulary)
        return whole.distance(whole.start)

    def refused(self, budget: int, text: int | None, thinking: Thinking) -> BudgetTooSmall:
        """The error of a budget that is too small for thought and text; `text`: a short text's tokens."""
        least, known = self._least(), None
        if least is not None and text is not None:
            known = math.ceil(least / thinking.share) + text + len(self.thoughts._ids(self.answer))
        advice = "raise max_tokens" if known is None else f"the least number that is known to do is {known}"
        error = BudgetTooSmall(f"no thought and text fit into {budget} tokens; {advice}.")
        error.least = known
        return error

    @cached_property
    def undecided(self) -> Grammar:
        """A thought that begins, or the text; of a text that stands between marks of its own, the mark."""
        assert isinstance(self.grammar, Grammar)  # a condition has no masks, and samplers of its own
        return _undecided(self.marks, self.answer.removeprefix(self.marks.begun), self.grammar)


@lru_cache(maxsize=256)
def _undecided(marks: Marks, answer: str, grammar: Grammar) -> Grammar:
    return (opening(marks.opener) + any_text()) | (opening(answer) if answer else grammar)


class Preamble:
    """What is written before one row's text, and its progress.

    Attributes:
        tokens: what was written.
        in_thought: there is a thought; until then the text may begin as well.
    """

    def __init__(
        self, start: PromptPreamble, vocabulary: Vocabulary, most: int, text: TokenAutomaton
    ) -> None:
        self._start, self._vocabulary, self._most, self._text = start, vocabulary, most, text
        self.in_thought, self.tokens = start.in_thought, list[int]()
        self._opener = start.marks.opener.encode()
        opener = "" if start.opened else start.marks.opener
        self._pieces = ThoughtPieces(opener, start.marks.closer)
        self.listener: Callable[[str], Any] | None = None

    @property
    def automaton(self) -> TokenAutomaton:
        """The constraint of what is written now."""
        start = self._start
        if not self.in_thought:
            return start.undecided.compile(self._vocabulary, limits=start.limits)
        opened = start.opened or not start.in_thought
        return start.block(opened=opened).compile(self._vocabulary, limits=start.limits)

    @property
    def budget(self) -> int | None:
        """Tokens that are left for the thought; None: it has not begun."""
        return self._most - len(self.tokens) if self.in_thought else None

    @property
    def ends_early(self) -> bool:
        """Whether it may end before the model ends it.  Then it has no drafts: they could move the place."""
        reason = self._start.reason
        return reason is not None and reason.mass is not None

    @property
    def check_due(self) -> bool:
        """Whether to check now if the text can begin."""
        return (
            self.ends_early and bool(self.tokens) and ends_sentence(self._vocabulary.token(self.tokens[-1]))
        )

    @cached_property
    def readiness(self) -> Readiness:
        """The measure of whether the text can begin."""
        return Readiness(self.after, self._text, self._start.thoughts.spell)

    def ready(self, logits: torch.Tensor) -> bool:
        """Whether the text can begin; `logits` [n + 1, V] are those of `readiness.chain`."""
        reason = self._start.reason
        assert reason is not None and reason.mass is not None
        return self.readiness.log_mass(logits) >= math.log(reason.mass)

    def decide(self, tokens: Sequence[int], ended: bool) -> str:
        """What the model's first tokens are: "thought", "text", "answer" (the mark before the text), or "".

        Of a thought it keeps the tokens of the opening mark, and no others.
        """
        written = b""
        for place, token in enumerate([*self.tokens, *tokens]):
            written += self._vocabulary.token(token)
            if written.startswith(self._opener):
                self.tokens = [*self.tokens, *tokens][: place + 1]
                self.in_thought = True
                self.feed(self.tokens)
                return "thought"
        self.tokens += tokens
        if self._opener.startswith(written) and not ended:
            return ""
        mark = self._start.answer.removeprefix(self._start.marks.begun)
        if not mark:
            return "text"
        return "answer" if ended else ""

    def feed(self, tokens: Sequence[int]) -> str:
        """The characters of the thought that these tokens complete."""
        return self._notify(self._pieces.feed(b"".join(map(self._vocabulary.token, tokens))))

    def finish(self, cut: bool) -> tuple[str, Thought]:
        """What is left of the thought's characters, and the whole; `cut`: its budget ended it."""
        rest = self._notify(self._pieces.finish())
        return rest, Thought(self._pieces.text, self.tokens, cut)

    @property
    def after(self) -> list[int]:
        """The ids between the thought and the text, which are not drawn."""
        return self._start.thoughts._ids(self._start.answer)

    def _notify(self, text: str) -> str:
        if text and self.listener is not None:
            self.listener(text)
        return text


class ThoughtPieces:
    """The text between two marks, in whole characters as they come."""

    def __init__(self, opener: str, closer: str) -> None:
        self._opener, self._pieces = opener, TextPieces([closer] if closer else [])
        self._held, self.text = "", ""

    def feed(self, data: bytes) -> str:
        """The characters that are complete now; may be empty."""
        return self._inside(self._pieces.feed(data))

    def finish(self) -> str:
        """What is left at the end of the thought."""
        return self._inside(self._pieces.finish())

    def _inside(self, text: str) -> str:
        self._held += text
        if self._opener:
            _, opened, rest = self._held.partition(self._opener)
            if not opened:
                return ""
            self._opener, self._held = "", rest
        if not self.text:
            self._held = self._held.lstrip()
        kept = self._held.rstrip()  # line feeds next to the marks are no part of it
        self._held = self._held[len(kept) :]
        self.text += kept
        return kept
