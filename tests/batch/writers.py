"""Stand-ins for a model: they write what a grammar allows, keyed by the seed, and misbehave where told to."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenform as tf

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], [256], [256])


@dataclass
class Text:
    text: str
    tokens: list[int]
    logprob: float = -1.0
    value: Any = None
    reason: str = "end"
    reasoning: str | None = None
    cut: tuple[str, ...] = ()


@dataclass
class Walker:
    """Walks a grammar's automaton at random; says in a file what it wrote."""

    log: str | None = None
    delay: float = 0.0
    seen: list[Any] = field(default_factory=list)

    def sample(
        self, prompts: Sequence[Any], grammars: Sequence[Any], *, seed: Sequence[int], **options: Any
    ) -> list[list[Any]]:
        if self.log is not None:
            with Path(self.log).open("a") as file:
                file.write("".join(f"{os.getpid()} {prompt}\n" for prompt in prompts))
        return [[self._one(*each)] for each in zip(prompts, grammars, seed)]

    def _one(self, prompt: str, grammar: Any, seed: int) -> Any:
        if "poison" in prompt:
            os._exit(7)
        if "broken" in prompt:
            raise RuntimeError("a fault of the engine")
        time.sleep(30.0 if "asleep" in prompt else self.delay)
        if "long" in prompt:
            return tf.errors.PromptTooLong("the prompt is too long.")
        auto, rng = grammar.compile(BYTES), random.Random(f"{seed} {prompt}")
        state, tokens = auto.start, []
        while True:
            allowed = auto.allowed_tokens(state).tolist()
            printable = [t for t in allowed if t == 256 or 32 <= t < 127] or allowed
            if len(tokens) > 40 and 256 in allowed:
                printable = [256]
            token = rng.choice(printable)
            if token == 256:
                return Text(bytes(tokens).decode("utf-8", "replace"), tokens)
            state = auto.advance(state, token)
            tokens.append(token)


def walker() -> Walker:
    return Walker()


def logged(log: str, delay: float = 0.0) -> Walker:
    return Walker(log, delay)


def absent() -> Walker:
    raise OSError("no weights here")
