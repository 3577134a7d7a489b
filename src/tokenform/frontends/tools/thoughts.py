"""How a model marks its thoughts: what opens and closes one, and where a prompt has left it.

Purpose: `find_marks` reads a tokenizer's chat template, `place` the end of a rendered prompt, and `thought`
is the grammar of the thought itself, before an answer of any form.
Invariant: a model is said to think only where its template has the marks, or its vocabulary both of them;
special tokens stand for themselves where the vocabulary has them, as in the grammar of a turn.
Complexity: a few renderings for a template, which are kept.
Rejected: a field of the request or the model's name as the sign that a thought is open (the same template
opens one, closes one or leaves it to the model, as it is asked).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends import forms
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.tools.compiled import shape_form
from tokenform.frontends.tools.detect import find_format
from tokenform.frontends.tools.formats import FORMATS
from tokenform.frontends.tools.layout import Format
from tokenform.frontends.tools.response_template import TOKEN
from tokenform.frontends.tools.shape import Free, Node, Seq, Shape, Special, Text, Trigger, marked, sequence
from tokenform.frontends.tools.templates import Template

# Those of models without a tool format here.
_OTHERS = (
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<reasoning>", "</reasoning>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<longcat_think>", "</longcat_think>"),
)
_COMMON = ("<think>", "</think>")
_CHANNEL = ("<|channel|>analysis<|message|>", "<|end|>")
_FINAL = "<|start|>assistant<|channel|>final<|message|>"
_BEGUN = "<|start|>assistant"
TAIL = 48
"""Tokens at the end of a prompt that tell where it has left the thought."""
_SAID, _THOUGHT = "Zq said", "Zq thought"


@dataclass(frozen=True)
class Marks:
    """What stands around a thought.

    Attributes:
        opener, closer: its marks.
        ending: what the model writes after the closer, before its answer.
        answer: what begins an answer that stands in a channel or between marks of its own; empty: nothing.
        begun: the part of `answer` that the prompt has already, where no thought comes before.
    """

    opener: str
    closer: str
    ending: str = ""
    answer: str = ""
    begun: str = ""

    def place(self, tail: str) -> str:
        """Where the end of a rendered prompt has left the thought: "open", "closed", or "" (not begun).

        Earlier in a prompt a mark may just be spoken of.
        """
        tail = tail.rstrip()
        if tail.endswith(self.closer.rstrip()) or (self.answer and tail.endswith(self.answer.rstrip())):
            return "closed"
        return "open" if tail.endswith(self.opener.rstrip()) else ""


def find_marks(tokenizer: Any) -> Marks | None:
    """The marks of a tokenizer's model; None: it is not known to think."""
    text = _text_of(tokenizer)
    if not text:
        return None
    tokens: Mapping[str, int] = getattr(tokenizer, "get_added_vocab", dict)()
    named = frozenset(tokens)
    try:
        names = tuple(sorted(Template.of(tokenizer).tokens.items()))
    except ToolError:
        return None
    return _found(text, named, names)


def marks_of_format(format: Any) -> Marks:
    """The marks of a tool format's models.

    Raises:
        ToolError: there is no such format.
    """
    form = find_format(format)
    if form.channels:
        return Marks(*_CHANNEL, answer=_FINAL, begun=_BEGUN)
    opener, closer = form.reasoning
    return Marks(opener, closer, "\n\n" if closer == "</think>" else "", _answer(form))


def _answer(form: Format) -> str:
    return form.content[0] if form.content else ""


def _text_of(tokenizer: Any) -> str:
    found = getattr(tokenizer, "chat_template", None)
    if isinstance(found, dict):
        return "\n".join(one for one in found.values() if isinstance(one, str))
    return found if isinstance(found, str) else ""


def _known() -> list[Marks]:
    """The marks of all families, the rarest first: many templates also speak of "<think>"."""
    families = [form for form in FORMATS.values() if not form.channels and form.reasoning != _COMMON]
    found = [marks_of_format("gpt_oss"), *map(marks_of_format, families)]
    pairs = dict.fromkeys([*((marks.opener, marks.closer) for marks in found[1:]), *_OTHERS, _COMMON])
    return [*(marks for marks in found if marks.answer), *(Marks(*pair) for pair in pairs)]


@lru_cache(maxsize=64)
def _found(text: str, added: frozenset[str], tokens: tuple[tuple[str, str], ...]) -> Marks | None:
    for marks in _known():
        pieces = [piece for mark in (marks.opener, marks.closer) for piece in TOKEN.findall(mark)]
        if not (_bears(text, marks.opener, marks.closer) or (pieces and added.issuperset(pieces))):
            continue
        if marks.begun or (marks.answer and marks.answer in text):
            return marks
        if not marks.answer:
            return replace(marks, ending=_ending(text, marks.closer, tokens))
    return None


def _bears(text: str, opener: str, closer: str) -> bool:
    """Whether a template writes or reads thoughts between these marks."""
    if opener == _CHANNEL[0]:
        return "<|channel|>" in text and "<|message|>" in text and "analysis" in text
    return closer in text


def _ending(text: str, closer: str, tokens: tuple[tuple[str, str], ...]) -> str:
    """What the template writes between the closing mark and the answer."""
    said: dict[str, Any] = {"role": "assistant", "content": _SAID}
    said |= dict.fromkeys(("reasoning_content", "reasoning", "thinking"), _THOUGHT)
    for messages in (
        [{"role": "user", "content": "Hi"}, said],
        [{"role": "user", "content": "Hi"}, said] * 2,
    ):
        try:
            written = Template(text, dict(tokens)).render(messages)
        except ToolError:
            continue
        found = re.search(rf"{_THOUGHT}\s*{re.escape(closer)}(\s*){_SAID}", written)
        if found:
            return found.group(1)
    spoken = re.search(re.escape(closer) + r"(\n+)", text.replace("\\n", "\n"))
    if spoken:
        return spoken.group(1)
    return "\n\n" if closer == "</think>" else ""


def _grammar(root: Node, source: str) -> Grammar:
    made = shape_form(Shape(root))
    return Grammar(forms.compiled(made, source), form=made, source=source)


@lru_cache(maxsize=64)
def thought(marks: Any, *, opened: bool = False) -> Grammar:
    """Any text between the marks of a thought, the marks, and what comes between them and the answer.

    Args:
        marks: `Marks`; a format's name, or a tokenizer whose chat template shows it.
        opened: the prompt has the opening mark already.
    Raises:
        ToolError: there is no such format.
    """
    known = marks if isinstance(marks, Marks) else marks_of_format(marks)
    closing = marked(known.closer, TOKEN)
    first = closing.parts[0] if isinstance(closing, Seq) else closing
    free = Free(until=(Trigger(first.text, special=isinstance(first, Special)),))  # type: ignore[union-attr]
    opening = Seq(()) if opened else marked(known.opener, TOKEN)
    root = sequence(opening, free, closing, Text(known.ending))
    return _grammar(root, f"thought({known.opener.strip()})")


@lru_cache(maxsize=256)
def after_thought(marks: Marks | None, tail: str, grammar: Grammar) -> Grammar:
    """A grammar that begins after the thought, where the end of a rendered prompt has left one open.

    A turn of tools is left as it is: `tools(…, prompt=…)` has the thought in it.
    """
    if marks is None or grammar.tools or marks.place(tail) != "open":
        return grammar
    before = thought(marks, opened=True)
    return (before + opening(marks.answer) if marks.answer else before) + grammar


@lru_cache(maxsize=64)
def opening(mark: str) -> Grammar:
    """A mark alone."""
    return _grammar(marked(mark, TOKEN), mark.strip())
