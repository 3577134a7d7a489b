"""Training examples: prompt text and answer text, in chunks that each have a seed of their own.

Purpose: `examples(seed, count)` is the whole data set; nothing is downloaded or stored.
Invariant: chunk `i` of a seed is always the same, so a run that was cut off goes on with the same data.
The mix: records by schema, copies of made-up words (they teach copying early), tool calls.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from tokenform.builtin.prompt import EOS, format_prompt

from .pools import Pools
from .records import Record, draw_record
from .tool_calls import draw_turn

TOOL_SHARE = 0.2
COMPACT_SHARE = 0.12
"""Documents without blanks, so that the model can write under a mask that allows none."""

_INSTRUCTIONS = (
    "Write this as JSON.",
    "Extract the facts as JSON.",
    "Fill in the form.",
    "Give the data as JSON.",
    "Read the text and answer in JSON.",
    "What does the text say?",
)


@dataclass(frozen=True)
class Example:
    """`prompt` + `answer` is one training text; `record` is what was asked, where there is one."""

    prompt: str
    answer: str
    record: Record | None = None


def user_text(p: Pools, text: str) -> str:
    """The record's prose, now and then with an instruction around it."""
    r = p.rng.random()
    if r < 0.7:
        return text
    instruction = p.rng.choice(_INSTRUCTIONS)
    return f"{instruction} {text}" if r < 0.85 else f"{text} {instruction}"


def record_example(p: Pools, **shares: float) -> Example:
    """A record in prose and the document that its schema asks for."""
    record = draw_record(p, **shares)
    compact = p.rng.random() < COMPACT_SHARE
    answer = json.dumps(record.document, ensure_ascii=False, separators=(",", ":") if compact else None)
    return Example(format_prompt(user_text(p, record.text), record.schema), answer + EOS, record)


def tool_example(p: Pools) -> Example:
    """One answer of an agent: a tool call, or a sentence."""
    turn = draw_turn(p)
    return Example(format_prompt(turn.messages, tools=turn.tools), turn.answer + EOS)


def examples(seed: int, count: int, *, held_out: bool = False, **options: Any) -> list[Example]:
    """`count` examples of one seed; `held_out` draws from the part that training never sees.

    Args:
        seed: fixes every draw.
        count: number of examples.
        held_out: names, words and field combinations of the evaluation.
        options: `tools` (share of tool examples), `unknown` and `nested` (see `draw_record`).
    """
    p = Pools(random.Random(seed), held_out)
    tools = options.pop("tools", TOOL_SHARE)
    return [tool_example(p) if p.rng.random() < tools else record_example(p, **options) for _ in range(count)]
