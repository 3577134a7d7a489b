"""A request of any API as one value that the engine runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenform.decoding.calls import AnySampler
from tokenform.decoding.draws import Transform
from tokenform.decoding.speculative.targets import Penalties
from tokenform.frontends import Grammar
from tokenform.server.thinking import RequestedThought
from tokenform.server.tooling import CallLayout


@dataclass
class TextRequest:
    """A prompt, or several, and the options of their texts.

    Attributes:
        prompt: text, token ids, or chat messages.
        further_prompts: more of them, whose texts come after those of the ones before.
        n: texts of each prompt.
        grammar: the constraint of every text; None: none.
        turn: the layout of tool calls; None: there are no tools.
        max_tokens: most tokens of a text; None: the server's limit.
        alternatives: how many likely tokens to report at each; None: no probabilities.
        drafter: proposes tokens; None: the server's own.
        thought: options of the thought before the text.
        chat_options: arguments of the chat template.
        show_schema: whether the model reads the schema; None: the generator's default.
        confidence: the values of the document whose probabilities to report: all, or those at JSON Pointers.
        report: whether to report on speculation.
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
    thought: RequestedThought = field(default_factory=RequestedThought)
    chat_options: dict[str, Any] = field(default_factory=dict)
    show_schema: bool | None = None
    confidence: bool | list[str] = False
    report: bool = False
    further_prompts: Sequence[Any] = ()

    @property
    def texts(self) -> int:
        """How many texts there are."""
        return self.n * (1 + len(self.further_prompts))
