"""A thought before a text: whether there is one, what it may cost, and how it is written.

Purpose: `Thoughts` finds in a rendered prompt whether a thought is open, closed or left to the model; `Lead`
is what is then written before a row's text, with a budget of its own.
Invariant: the constraint binds what comes after the thought.  The thought ends within its budget, and leaves
as many tokens as the shortest completion of the text has.  Where it is left to the model, its first tokens
tell: what begins as the opening mark does is a thought, all else is the text.
Rejected: one grammar for both (a budget of tokens is no property of a language; the thought could take all
but the last few of the text's).  A thought only where a field asks for one: a template that opens it has it
written anyway, into the text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import torch

from tokenform.decoding.aloud import Readiness, Reason, ends_sentence
from tokenform.decoding.pieces import TextPieces
from tokenform.engine import Grammar, Limits, TokenAutomaton, Vocabulary, tokenizers
from tokenform.errors import BudgetTooSmall, OptionError, TokenformError
from tokenform.frontends import Condition, any_text
from tokenform.frontends.tools import Marks, find_marks, marks_of_format, thought
from tokenform.frontends.tools.templates import variables
from tokenform.frontends.tools.thoughts import TAIL, opening

SHARE = 3 / 4
"""Of the tokens that a text may have, how many its thought takes at most where nobody says."""
_SWITCHES = ("enable_thinking", "thinking", "enable_reasoning", "think")
_EFFORTS = ("reasoning_effort", "thinking_effort")
_ASKED = "x"
_UNMARKED = Marks("", "")


class NoThought(OptionError):
    """A thought is asked for that this model, or this prompt, can't have."""


@dataclass(frozen=True)
class Thinking:
    """How much thought a call lets come before a text.

    Attributes:
        asked: True: there is one; False: there is none, and the prompt is written so; None: as the model's
            template and the model have it.
        max_tokens: most tokens of the thought, marks included; None: as many as its share allows.
        share: the part of what the shortest completion leaves that the thought may take, to 1; 0: a thought
            that the prompt has opened is a part of the text.
        effort: what templates that have a word for it are told.
        aloud: how a model without a block of thoughts thinks; None: it does not.
    """

    asked: bool | None = None
    max_tokens: int | None = None
    share: float = SHARE
    effort: str | None = None
    aloud: Reason | None = None


RAW = Thinking(share=0.0)
"""A prompt is gone on with: what it has opened is the text's own."""


def thinking_of(
    asked: Thinking | bool | int | None, chat_options: Mapping[str, Any] | None = None
) -> Thinking:
    """`thinking=` of a call as a value: True, False, a number of tokens, or None, where `chat_options` may
    switch thoughts off."""
    if asked is None:
        asked = Thinking()
    if isinstance(asked, Thinking):
        off = chat_options is not None and any(chat_options.get(name) is False for name in _SWITCHES)
        return replace(asked, asked=False) if off and asked.asked is None else asked
    if isinstance(asked, bool):
        return Thinking(asked)
    if isinstance(asked, int) and asked > 0:
        return Thinking(True, asked)
    raise OptionError(f"thinking={asked!r} is not possible; give True, False, a number of tokens, or None.")


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
    return Thinking(True, reason.max_tokens, aloud=reason)


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
        """What stands around a thought; None: the model is not known to think."""
        return None if self._tokenizer is None else find_marks(self._tokenizer)

    def aloud(self, thinking: Thinking) -> Reason | None:
        """How the model thinks aloud; None where it does not, or has a block of thoughts of its own."""
        return thinking.aloud if self.marks is None else None

    def options(self, thinking: Thinking) -> dict[str, Any]:
        """What the chat template is told: its own switches."""
        if thinking.asked is None:
            return {}
        known = variables(self._tokenizer)
        told: dict[str, Any] = {name: thinking.asked for name in _SWITCHES if name in known}
        effort = thinking.effort if thinking.asked else "none"
        if effort is not None:
            told |= {name: effort for name in _EFFORTS if name in known}
        budget = thinking.max_tokens if thinking.asked else 0
        if "thinking_budget" in known and budget is not None:
            told["thinking_budget"] = budget
        return told

    def lead(
        self, ids: list[int], grammar: Grammar | Condition, thinking: Thinking, limits: Limits | None = None
    ) -> tuple[list[int], Start | None]:
        """The prompt to go on from, and what is written before the text; None: nothing.

        Args:
            ids: of the rendered prompt.
            grammar: of the text.
        Raises:
            NoThought: one is asked for, and can't be had.
        """
        aloud = self.aloud(thinking)
        if aloud is not None:
            return ids, Start(self, _UNMARKED, True, True, aloud.bridge, grammar, limits, aloud)
        marks = self._marks(thinking)
        if marks is None or not thinking.share:
            return ids, None
        tail = self._text(ids[-TAIL:])
        place = marks.place(tail)
        if place == "closed":
            if thinking.asked:
                raise NoThought("the model's template has closed the thought already.")
            said = tail.rstrip().endswith(marks.closer.rstrip())
            return [*ids, *self._ids(self._answer(marks, grammar) if said else "")], None
        if place == "open" and thinking.asked is False:
            line = "\n" if tail.endswith("\n") else ""
            closed = line + marks.closer + (marks.ending or ("\n\n" if line else ""))
            return [*ids, *self._ids(closed), *self._ids(self._answer(marks, grammar))], None
        begun = place == "open" or thinking.asked is True
        if not begun and not (self._turn and tail.rstrip().endswith(self._turn)):
            return ids, None  # the model's turn does not begin here, as the chat template has it
        answer = self._answer(marks, grammar)
        if not begun and thinking.asked is False:
            instead = answer.removeprefix(marks.begun)
            if not answer and marks.ending:  # an empty one, as templates that can be told write it
                instead = f"{marks.opener}\n\n{marks.closer}{marks.ending}"
            return [*ids, *self._ids(instead)], None
        return ids, Start(self, marks, place == "open", begun, answer, grammar, limits)

    def _marks(self, thinking: Thinking) -> Marks | None:
        if self.marks is not None or not thinking.asked:
            return self.marks
        try:
            return marks_of_format(self.format or self._tokenizer)
        except TokenformError as error:
            raise NoThought(f"this model has no known block of thought: {error}") from None

    def _answer(self, marks: Marks, grammar: Grammar | Condition) -> str:
        """What is written before the answer; a turn of tools writes it itself."""
        return (marks.begun if grammar.tools else marks.answer) if marks.answer else ""

    def _text(self, ids: Sequence[int]) -> str:
        return b"".join(self._vocabulary.token(token) for token in ids).decode("utf-8", "replace")

    def _ids(self, text: str) -> list[int]:
        return tokenizers.encode(self._tokenizer, text, specials=False) if text else []

    @cached_property
    def _turn(self) -> str:
        """What the template writes last, without marks of a thought."""
        render = getattr(self._tokenizer, "apply_chat_template", None)
        if render is None or self.marks is None:
            return ""
        asked = [{"role": "user", "content": _ASKED}]
        try:
            begun = str(render(asked, add_generation_prompt=True, tokenize=False))
            bare = str(render(asked, add_generation_prompt=False, tokenize=False))
        except Exception:  # a template is a program and may raise anything
            return ""
        found = begun[len(bare) :] if begun.startswith(bare) else ""
        found = found or begun.rpartition(_ASKED)[2]
        for mark in (self.marks.opener, self.marks.closer):
            found = found.partition(mark.strip())[0]
        return found.strip()


@dataclass(frozen=True)
class Start:
    """What is written before the texts of one prompt.

    Attributes:
        opened: the prompt has the opening mark.
        begun: there is a thought; else the model's first tokens tell.
        answer: what stands before the text where it begins.
        grammar: of the text.
        aloud: it is thought aloud, without marks.
    """

    own: Thoughts
    marks: Marks
    opened: bool
    begun: bool
    answer: str
    grammar: Grammar | Condition
    limits: Limits | None
    aloud: Reason | None = None

    def lead(self, automaton: TokenAutomaton, budget: int, thinking: Thinking) -> Lead | None:
        """What is written before one text; None: it is left to the model, and there is no room for it.

        Args:
            automaton, budget: of the text.
        Raises:
            BudgetTooSmall: no thought and text fit into the budget together.
            OptionError: no thought fits into `max_tokens`.
        """
        least, most = self._least(), thinking.max_tokens
        if least is not None and most is not None and least > most:
            if not self.begun:
                return None
            raise OptionError(f"no thought fits into {most} tokens: the shortest has {least}.")
        text = automaton.distance(automaton.start, budget)
        left = budget - (budget if text is None else text) - len(self.own._ids(self.answer))
        most = min(left if most is None else min(left, most), int(left * thinking.share))
        if least is None or least > most:
            if not self.begun:
                return None
            raise self.refused(budget, text, thinking)
        return Lead(self, self.own._vocabulary, most, automaton)

    def block(self, *, opened: bool) -> Grammar:
        return any_text() if self.aloud else thought(self.marks, opened=opened)

    def _least(self) -> int | None:
        """Tokens of the shortest thought; None: it is not known."""
        if self.aloud:
            return 1
        whole = self.block(opened=self.opened).compile(self.own._vocabulary)
        return whole.distance(whole.start)

    def refused(self, budget: int, text: int | None, thinking: Thinking) -> BudgetTooSmall:
        """The error of a budget that is too small for thought and text; `text`: a short text's tokens."""
        least, known = self._least(), None
        if least is not None and text is not None:
            known = math.ceil(least / thinking.share) + text + len(self.own._ids(self.answer))
        told = "raise max_tokens" if known is None else f"the least number that is known to do is {known}"
        error = BudgetTooSmall(f"no thought and text fit into {budget} tokens; {told}.")
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


class Lead:
    """What is written before one row's text, and how far it is.

    Attributes:
        tokens: what was written.
        begun: there is a thought; until then the text may begin as well.
    """

    def __init__(self, start: Start, vocabulary: Vocabulary, most: int, text: TokenAutomaton) -> None:
        self._start, self._vocabulary, self._most, self._text = start, vocabulary, most, text
        self.begun, self.tokens = start.begun, list[int]()
        self._opener = start.marks.opener.encode()
        opener = "" if start.opened else start.marks.opener
        self._pieces = ThoughtPieces(opener, start.marks.closer)
        self.listener: Callable[[str], Any] | None = None

    @property
    def automaton(self) -> TokenAutomaton:
        """Of what is written now."""
        start = self._start
        if not self.begun:
            return start.undecided.compile(self._vocabulary, limits=start.limits)
        opened = start.opened or not start.begun
        return start.block(opened=opened).compile(self._vocabulary, limits=start.limits)

    @property
    def budget(self) -> int | None:
        """Tokens that are left for the thought; None: it has not begun."""
        return self._most - len(self.tokens) if self.begun else None

    @property
    def measured(self) -> bool:
        """Whether it may end where the text could begin; then it is written token by token, so that drafts
        don't change where."""
        aloud = self._start.aloud
        return aloud is not None and aloud.mass is not None

    @property
    def due(self) -> bool:
        """Whether it is to be asked now if the text can begin."""
        return self.measured and bool(self.tokens) and ends_sentence(self._vocabulary.token(self.tokens[-1]))

    @cached_property
    def readiness(self) -> Readiness:
        """What is asked."""
        return Readiness(self.after, self._text, self._start.own.spell)

    def ready(self, logits: torch.Tensor) -> bool:
        """Whether the text can begin; `logits` [n + 1, V] are those of `readiness.chain`."""
        aloud = self._start.aloud
        assert aloud is not None and aloud.mass is not None
        return self.readiness.log_mass(logits) >= math.log(aloud.mass)

    def decide(self, tokens: Sequence[int], ended: bool) -> str:
        """After tokens of what may be either: "thought", "text", "answer" (the mark before the text), or "".

        Of a thought the tokens of its opening mark are kept, and no others.
        """
        written = b""
        for place, token in enumerate([*self.tokens, *tokens]):
            written += self._vocabulary.token(token)
            if written.startswith(self._opener):
                self.tokens = [*self.tokens, *tokens][: place + 1]
                self.begun = True
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
        return self._told(self._pieces.feed(b"".join(map(self._vocabulary.token, tokens))))

    def finish(self, cut: bool) -> tuple[str, Thought]:
        """What is left of the thought's characters, and the whole; `cut`: its budget ended it."""
        rest = self._told(self._pieces.finish())
        return rest, Thought(self._pieces.text, self.tokens, cut)

    @property
    def after(self) -> list[int]:
        """What stands between the thought and the text, which nobody draws."""
        return self._start.own._ids(self._start.answer)

    def _told(self, text: str) -> str:
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
        kept = self._held.rstrip()  # line feeds beside the marks are no part of it
        self._held = self._held[len(kept) :]
        self.text += kept
        return kept
