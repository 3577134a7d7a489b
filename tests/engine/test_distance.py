"""What `distance` promises, against the least number of tokens, found by trying every way."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import tokenform as tf

SEEDS = 150


def least(automaton: tf.TokenAutomaton, state: tf.engine.State, most: int = 12) -> int | None:
    """Breadth first over all tokens; None: not within `most` tokens, or too many states to try."""
    seen, level = {state}, [state]
    for count in range(most + 1):
        if any(map(automaton.is_accepting, level)):
            return count
        further = []
        for here in level:
            for token in automaton.allowed_tokens(here).tolist():
                after = automaton.advance(here, token)
                if after not in seen:
                    seen.add(after)
                    further.append(after)
        level = further
        if len(seen) > 2000:
            return None
    return None


def pattern(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(["a", "b", "c", "ab", "abc", "[ab]", "ca"])
    one, other = pattern(rng, depth - 1), pattern(rng, depth - 1)
    if kind < 0.55:
        return one + other
    if kind < 0.75:
        return f"(?:{one}|{other})"
    count = f"{{{rng.randint(1, 3)},{rng.randint(3, 5)}}}" if kind < 0.9 else rng.choice("*?")
    return f"(?:{one}){count}"


def word(rng: random.Random, least: int, most: int) -> str:
    return "".join(rng.choice("abc") for _ in range(rng.randint(least, most)))


def grammar(rng: random.Random) -> tf.Grammar:
    kind = rng.randrange(3)
    if kind == 0:
        return tf.regex(pattern(rng, 4))
    if kind == 1:
        return tf.choice(sorted({word(rng, 1, 8) for _ in range(rng.randint(1, 5))}))
    recursive = f'x: "a" x "b" | "{word(rng, 1, 3)}" x | "c" | "{word(rng, 4, 4)}"'
    return tf.lark(f"start: x\n{recursive}", lexer=rng.choice(["contextual", "dynamic"]))


def test_distance_is_never_too_small_never_missing_and_seldom_too_large() -> None:
    found: Counter[int] = Counter()
    for seed in range(SEEDS):
        rng = random.Random(seed)
        words = sorted({word(rng, 2, 4) for _ in range(rng.randint(1, 6))})
        tokens = [b"a", b"b", b"c", *(text.encode() for text in words), b""]
        vocabulary = tf.Vocabulary(tokens, eos=[len(tokens) - 1])
        automaton = grammar(rng).compile(vocabulary)
        state = automaton.start
        for _ in range(3):
            exact = least(automaton, state)
            if exact is None:
                break
            distance = automaton.distance(state)
            assert distance is not None and distance >= exact
            found[distance - exact] += 1
            if exact:
                assert automaton.mask_within(state, distance).any()
            if exact == 1:  # what one token ends is always seen
                assert automaton.mask_within(state, 1).any()
            allowed = [t for t in automaton.allowed_tokens(state).tolist() if t != len(tokens) - 1]
            if not allowed:
                break
            state = automaton.advance(state, rng.choice(allowed))
    total = sum(found.values())
    assert total > 300 and found[0] > 0.95 * total, found


@pytest.mark.parametrize(
    "text",
    [
        'start: "a" y | "acc"\ny: "c"',
        'start: x\nx: "a" x | "c" | "accc"',
        'start: A y | B\nA: "a"\nB: "acc"\ny: "c"',
    ],
)
def test_an_end_is_found_where_lexemes_begin_alike(text: str) -> None:
    """After `a`, a `c` may be a lexeme or go on with a longer one: no plan of whole lexemes tells."""
    vocabulary = tf.Vocabulary([b"a", b"b", b"c", b""], eos=[3])
    automaton = tf.lark(text).compile(vocabulary)
    state = automaton.advance(automaton.start, 0)
    assert automaton.distance(automaton.start) == least(automaton, automaton.start)
    assert automaton.distance(state) == least(automaton, state) == 1


@pytest.mark.parametrize("begun", ["5.", "-0.", "5421241237.", "1e", "[3.", '{"a": 7.'])
def test_a_way_to_the_end_of_a_number_passes_no_other_end(begun: str) -> None:
    """Arithmetic told the rest of a number as "0e0", whose positions were remembered as farther from an end
    than they are: what a budget allowed hung on what had been asked before."""
    vocabulary = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b"12", b""], eos=[257])
    asked, fresh = (tf.json_schema(True).core.compile(vocabulary, None, False) for _ in range(2))
    state, other = (automaton.step_bytes(automaton.start, begun.encode()) for automaton in (asked, fresh))
    assert asked.distance(state) == 1 + (begun[0] in "[{")
    for budget in (1, 2, 3, 4):
        assert (asked.mask_within(state, budget) == fresh.mask_within(other, budget)).all()
