"""What a request comes to, whichever API it speaks: one value that the engine runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenform.decoding.calls import AnySampler
from tokenform.decoding.draws import Transform
from tokenform.decoding.speculative.targets import Penalties
from tokenform.frontends import Grammar
from tokenform.server.thinking import AskedThought
from tokenform.server.tooling import CallLayout


@dataclass
class Wanted:
    """One prompt and what is to be written for it.

    Attributes:
        prompt: text, token ids, or chat messages.
        grammar: what every text is bound to; None: nothing.
        turn: how tools are called in it; None: there are none.
        max_tokens: most tokens of a text; None: what the server allows.
        alternatives: how many likely tokens to tell at each; None: no probabilities are asked for.
        drafter: guesses tokens; None: the server's own does.
        asked: the thought that comes before the text.
        chat_options: what the chat template is told.
        show_schema: whether the model reads the schema; None: as the server's generator has it.
        confidence: the values of the document whose probabilities are told: all, or those at JSON Pointers.
        report: what speculation did is told.
    """

    prompt: Any
    grammar: Grammar | None = None
    turn: CallLayout | None = None
    n: int = 1
    seed: int | None = None
    max_tokens: int | None = None
    sampler: AnySampler | None = None
    penalties: Penalties | None = None
    transforms: Sequence[Transform] = ()
    stop: Sequence[str] = field(default_factory=list)
    alternatives: int | None = None
    drafter: Any = None
    asked: AskedThought = field(default_factory=AskedThought)
    chat_options: dict[str, Any] = field(default_factory=dict)
    show_schema: bool | None = None
    confidence: bool | list[str] = False
    report: bool = False
