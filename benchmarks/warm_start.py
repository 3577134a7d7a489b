"""What a second process saves with `cache_dir`: reading a grammar, a tokenizer; and what masks would save.

Cold and warm are measured in turns, in one process whose memory is cleared in between; medians.

    python benchmarks/warm_start.py
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenform as tf
from tokenform import disk_cache

TOKENS = 131_072
ROUNDS = 5


def timed(work: Callable[[], Any]) -> float:
    tf.engine.clear_cache()
    begun = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - begun)


def cold_and_warm(work: Callable[[], Any], folder: Path) -> tuple[float, float]:
    """Medians of milliseconds without an entry and with one."""
    cold, warm = [], []
    for _ in range(ROUNDS):
        for path in folder.iterdir():
            path.unlink()
        cold.append(timed(work))
        warm.append(timed(work))
    return statistics.median(cold), statistics.median(warm)


def large_tokenizer() -> Any:
    """A byte-level tokenizer of 131,072 made-up pieces."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    draw = random.Random(0)
    pieces = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    while len(pieces) < TOKENS - 1:
        word = "".join(draw.choice("etaoinshrdlucmfwypvbgkjqxzĠ") for _ in range(draw.randint(2, 9)))
        pieces.setdefault(word, len(pieces))
    tokenizer = Tokenizer(models.BPE(vocab=pieces, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<end>"])
    return tokenizer


def masks(grammar: tf.Grammar, vocabulary: tf.Vocabulary) -> tuple[float, float]:
    """Milliseconds for the masks along a drawn text of 60 tokens, and for as many bytes from a file."""
    draw, automaton = random.Random(1), grammar.compile(vocabulary)
    begun, state, count = time.perf_counter(), automaton.start, 0
    while count < 60:
        automaton.mask(state)
        count += 1
        allowed = automaton.allowed_tokens(state)
        token = int(allowed[draw.randrange(len(allowed))])
        if token in vocabulary.eos:
            break
        state = automaton.advance(state, token)
    made = 1e3 * (time.perf_counter() - begun)
    disk_cache.write("masks", random.Random(2).randbytes(count * TOKENS // 8), b"as many bytes")
    begun = time.perf_counter()
    disk_cache.read("masks", b"as many bytes")
    return made, 1e3 * (time.perf_counter() - begun)


def main() -> None:
    tokenizer = large_tokenizer()
    vocabulary = tf.Vocabulary.from_tokenizer(tokenizer, eos=[TOKENS - 1])
    with tempfile.TemporaryDirectory() as name:
        folder = tf.engine.cache_dir(name)
        assert folder is not None
        print(f"{'':<28} {'cold ms':>9} {'warm ms':>9} {'times':>6}")
        for grammar in ("python", "verilog", "c", "sql", "json"):
            cold, warm = cold_and_warm(lambda grammar=grammar: tf.grammars.load(grammar), folder)
            print(f"{'grammar ' + grammar:<28} {cold:>9.1f} {warm:>9.1f} {cold / warm:>6.1f}")
        cold, warm = cold_and_warm(lambda: tf.engine.tokenizers.read(tokenizer), folder)
        print(f"{'tokenizer of 131,072':<28} {cold:>9.1f} {warm:>9.1f} {cold / warm:>6.1f}")
        begun = timed(lambda: tf.Vocabulary(vocabulary.tokens, vocabulary.eos, vocabulary.special))
        print(f"{'its trie (not kept)':<28} {begun:>9.1f}")
        for shown, text in (
            ("schema", {"type": "object", "properties": {"a": {"type": "string"}}}),
            ("sql", None),
        ):
            grammar = tf.grammars.load("sql") if text is None else tf.json_schema(text)
            made, read = masks(grammar, vocabulary)
            print(f"{'masks of a text, ' + shown:<28} {made:>9.1f} {read:>9.1f}   (made; read from a file)")


if __name__ == "__main__":
    main()
