"""What a family of tokenizers reports."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class TokenTable:
    """The vocabulary of a tokenizer.

    Attributes:
        tokens: bytes of each id; empty where an id stands for no text.
        eos: ids that end a text, as far as the tokenizer knows.
        special: ids that are no text (control tokens); their bytes are their names.
    """

    tokens: list[bytes]
    eos: list[int] = field(default_factory=list)
    special: list[int] = field(default_factory=list)
