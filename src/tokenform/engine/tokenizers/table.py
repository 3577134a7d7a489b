"""What a family of tokenizers reports."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np


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

    def to_bytes(self) -> bytes:
        """The table as bytes: a line of JSON, the lengths of the tokens (uint32), their bytes."""
        head = json.dumps({"count": len(self.tokens), "eos": self.eos, "special": self.special})
        lengths = np.fromiter(map(len, self.tokens), np.uint32, len(self.tokens))
        return b"".join((head.encode(), b"\n", lengths.astype("<u4").tobytes(), *self.tokens))

    @staticmethod
    def from_bytes(data: bytes) -> TokenTable:
        """The table whose bytes these are.

        Raises:
            ValueError: they are none.
        """
        line, mark, rest = data.partition(b"\n")
        head = json.loads(line)
        if not mark or not isinstance(head, dict) or not {"count", "eos", "special"} <= head.keys():
            raise ValueError("not a table of tokens")
        count = head["count"]
        ends = [0, *accumulate(np.frombuffer(rest, "<u4", count).tolist())]
        body = rest[4 * count :]
        if ends[-1] != len(body):
            raise ValueError("not a table of tokens")
        return TokenTable([body[a:b] for a, b in pairwise(ends)], head["eos"], head["special"])
