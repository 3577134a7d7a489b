"""Memory that is let go and made again, and errors that cost one call: states stay what they were."""

from __future__ import annotations

import json
import random
import string
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokenform as tf
from tokenform.errors import InvalidState, LimitExceeded, TokenRejected

WORDS = [b"true", b'": ', b'", "', b"name", b'{"', b'"}', b"[[", b"]]", b", ", b"12", b"0.5"]
TOKENS = [bytes([b]) for b in range(256)] + WORDS + [b"</s>"]
EOS = len(TOKENS) - 1
VOCABULARY = tf.Vocabulary(TOKENS, eos=[EOS], special=[EOS])

GRAMMARS = {
    "object": tf.json_schema({"type": "object"}),
    "integers": tf.json_schema({"type": "object", "additionalProperties": {"type": "integer"}}),
    "prices": tf.json_schema(
        {"type": "object", "properties": {"name": {"type": "number", "multipleOf": 0.01}}}
    ),
    "unique": tf.json_schema({"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    "nested": tf.json_schema(
        {"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}
    ),
    "sum": tf.gbnf('root ::= t ("+" t)*\nt ::= [0-9]+ | "(" root ")"'),
    "words": tf.regex(r"([a-z]{2,9}( |-))*[0-9]{1,40}"),
}


def walk(automaton: tf.TokenAutomaton, seed: int, steps: int = 60) -> tuple[list[tf.engine.State], list[int]]:
    """A text drawn at random: its states and tokens."""
    rng, states, tokens = random.Random(seed), [automaton.start], []
    for _ in range(steps):
        allowed = [t for t in automaton.allowed_tokens(states[-1]).tolist() if t != EOS]
        if not allowed:
            break
        tokens.append(rng.choice(allowed))
        states.append(automaton.advance(states[-1], tokens[-1]))
    return states, tokens


def what_is_said(automaton: tf.TokenAutomaton, state: tf.engine.State) -> list[Any]:
    return [
        automaton.mask(state).tolist(),
        automaton.is_accepting(state),
        automaton.forced_bytes(state),
        automaton.is_finished(state),
    ]


@pytest.mark.parametrize("name", GRAMMARS)
def test_states_outlive_what_they_were_made_in(name: str) -> None:
    """Held states say the same after everything else was let go, in whatever order they are asked."""
    automaton = GRAMMARS[name].compile(VOCABULARY)
    fresh = GRAMMARS[name].core.compile(VOCABULARY)
    for seed in range(4):
        states, tokens = walk(automaton, seed)
        other = [fresh.start]
        for token in tokens:
            other.append(fresh.advance(other[-1], token))
        automaton.clear()
        order = list(range(len(states)))
        random.Random(seed).shuffle(order)
        for at in order:
            assert what_is_said(automaton, states[at]) == what_is_said(fresh, other[at])
            assert automaton.oracle(states[at]) == automaton.allowed_tokens(states[at]).tolist()
            if at < len(tokens):
                after = automaton.advance(states[at], tokens[at])
                assert what_is_said(automaton, after) == what_is_said(fresh, other[at + 1])


@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_do_not_depend_on_memory(name: str) -> None:
    """With hardly any memory the masks are those of an automaton that keeps everything."""
    scarce = GRAMMARS[name].compile(VOCABULARY, limits=tf.engine.Limits(memory=1))
    ample = GRAMMARS[name].core.compile(VOCABULARY, tf.engine.Limits(memory=1 << 40))
    for seed in range(3):
        states, tokens = walk(ample, seed, 40)
        state = scarce.start
        for at, token in enumerate(tokens):
            assert np.array_equal(scarce.mask(state), ample.mask(states[at]))
            state = scarce.advance(state, token)
        assert what_is_said(scarce, state) == what_is_said(ample, states[-1])
        assert scarce.distance(state) == ample.distance(states[-1])
    assert scarce.stats()["ended_full"] > 10 and ample.stats()["generations"] == 1


def documents(name: str, count: int) -> list[bytes]:
    rng = random.Random(7)
    word = lambda: "".join(rng.choice(string.ascii_lowercase) for _ in range(6))  # noqa: E731
    made: list[Any] = []
    for _ in range(count):
        match name:
            case "integers":
                made.append({word(): rng.randrange(10**6) for _ in range(6)})
            case "prices":
                made.append({"name": rng.randrange(10**8) / 100})
            case "unique":
                made.append([word() for _ in range(6)])
    return [json.dumps(document).encode() for document in made]


@pytest.mark.parametrize("name", ["integers", "prices", "unique"])
def test_traffic_does_not_fill_an_automaton(name: str) -> None:
    """What an automaton holds is bounded whatever has passed through it."""
    bound = 4 << 20
    automaton = GRAMMARS[name].compile(VOCABULARY, limits=tf.engine.Limits(memory=bound))
    for text in documents(name, 600):
        state = automaton.start
        for token in VOCABULARY.greedy(text) or []:
            assert automaton.allows(state, token)
            state = automaton.advance(state, token)
        assert automaton.is_accepting(state)
        stats = automaton.stats()
        assert stats["bytes"] <= bound + 2 * stats["bytes_of_live_texts"]
    assert stats["ended_full"] > 0 and stats["ended_by_errors"] == 0


def test_a_long_text_is_not_made_again_at_every_step() -> None:
    """A text that alone needs more than the limit ends generations ever more rarely."""
    automaton = GRAMMARS["unique"].compile(VOCABULARY, limits=tf.engine.Limits(memory=4 << 20))
    text = json.dumps([f"{i:05d}" for i in range(400)]).encode()
    state = automaton.start
    for byte in text:
        state = automaton.advance(state, byte)
    assert automaton.is_accepting(state)
    assert automaton.stats()["ended_full"] < 40


POISON = {
    "alternatives": (
        {"oneOf": [{"properties": {f"p{i}": {"const": i}, "k": {"minimum": i}}} for i in range(14)]},
        b'{"k": 13, "x',
    ),
    "search": ({"type": "string", "pattern": "^(?=(.*a.{9}b))(?=(.*c.{11}d))(?=(.*e.{10}f)).*$"}, b'"abc'),
    "counts": (
        {"type": "array", "uniqueItems": True, "items": {"type": "string", "maxLength": 9}},
        b'["abc", "',
    ),
}


@pytest.mark.parametrize("name", POISON)
def test_a_limit_costs_one_call(name: str) -> None:
    """Wherever a call is cut short, later calls and other texts get what an unhurried automaton says."""
    schema, text = POISON[name]
    grammar = tf.json_schema(schema)
    ample = grammar.compile(VOCABULARY, limits=tf.engine.Limits(work=10**9))
    state, masks = ample.start, []
    for byte in text:
        masks.append(ample.mask(state))
        state = ample.advance(state, byte)
    failed = 0
    for work in [2, 5, 10, 20, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 10**7]:
        try:
            hurried = grammar.core.compile(VOCABULARY, tf.engine.Limits(work=work))
        except LimitExceeded:
            failed += 1
            continue
        other = hurried.start
        for at, byte in enumerate(text):
            for _ in range(2):
                try:
                    assert np.array_equal(hurried.mask(other), masks[at])
                except LimitExceeded as error:
                    assert "Limits.work" in str(error)
                    failed += 1
            try:
                other = hurried.advance(other, byte)
            except LimitExceeded:
                failed += 1
                break
    assert failed > 0


def test_limits_are_values() -> None:
    assert tf.engine.Limits(work=5) == tf.engine.Limits(work=5) != tf.engine.Limits(work=6)
    assert len({tf.engine.Limits(), tf.engine.Limits()}) == 1
    assert tf.engine.Limits(depth=7).depth == 7 and tf.engine.Limits().depth == 10_000
    assert "depth=3" in repr(tf.engine.Limits(depth=3))


def test_states_are_of_their_automaton() -> None:
    one, other = GRAMMARS["object"].compile(VOCABULARY), GRAMMARS["words"].compile(VOCABULARY)
    assert one.start == one.start and len({one.start, one.start}) == 1 and one.start != other.start
    for ask in (one.mask, one.is_accepting, one.is_finished, one.distance, one.forced_bytes, one.oracle):
        with pytest.raises(InvalidState):
            ask(other.start)
    with pytest.raises(InvalidState):
        one.advance(other.start, 0)
    with pytest.raises(InvalidState):
        one.fill_masks([other.start], np.zeros((1, one.mask_words), np.uint32))
    with pytest.raises(TypeError):
        one.mask(0)  # type: ignore[arg-type]


RECURSIVE = {
    "any": True,
    "list": {"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"},
    "chain": {
        "$defs": {
            "n": {
                "type": "object",
                "properties": {"next": {"$ref": "#/$defs/n"}, "pair": {"$ref": "#/$defs/pair"}},
                "required": ["pair"],
                "additionalProperties": False,
            },
            "list": {"type": "array", "items": {"$ref": "#/$defs/list"}},
            "pair": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/list"}},
        },
        "$ref": "#/$defs/n",
    },
}


@pytest.mark.parametrize("depth", [1, 2, 3, 7])
@pytest.mark.parametrize("name", RECURSIVE)
def test_nesting_ends_at_the_limit(name: str, depth: int) -> None:
    """Tokens that go deeper are masked, and every text can be ended."""
    automaton = tf.json_schema(RECURSIVE[name]).compile(VOCABULARY, limits=tf.engine.Limits(depth=depth))
    spare = 3 if name == "chain" else 0  # its values hold an array of arrays, however flat
    deepest = 0
    for seed in range(30):
        rng, state, level = random.Random(seed), automaton.start, 0
        for _ in range(60):
            allowed = automaton.allowed_tokens(state).tolist()
            assert allowed and allowed == automaton.oracle(state)
            deeper = [t for t in allowed if t < EOS and TOKENS[t][-1:] in (b"[", b"{")]
            token = rng.choice(deeper if deeper and rng.random() < 0.8 else allowed)
            if token == EOS:
                break
            text = TOKENS[token]
            state = automaton.advance(state, token)
            level += sum(text.count(c) for c in (b"[", b"{")) - sum(text.count(c) for c in (b"]", b"}"))
            if b'"' not in text:
                deepest = max(deepest, level)
        assert automaton.distance(state) is not None
    if name == "list":
        assert deepest == depth
    if name == "chain":
        assert deepest <= depth + spare


def test_a_rejected_token_costs_nothing() -> None:
    automaton = GRAMMARS["object"].compile(VOCABULARY)
    for _ in range(3):
        with pytest.raises(TokenRejected):
            automaton.advance(automaton.start, ord("["))
    assert automaton.stats()["ended_by_errors"] == 0


def test_a_text_longer_than_the_stack_is_let_go() -> None:
    automaton = tf.regex("(ab|c){300000}").core.compile(VOCABULARY)
    state = automaton.start
    for _ in range(200_000):
        state = automaton.advance(state, ord("c"))
    automaton.clear()
    assert automaton.allows(state, ord("a"))
    del state
    automaton.clear()
    assert automaton.allows(automaton.start, ord("a"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.json_schema(
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x.{5}y"}}}
        ),
        lambda: tf.lark('start: item ("," item)*\nitem: /[a-z]{2,30}/ | "(" start ")"'),
    ],
    ids=["schema", "grammar"],
)
def test_a_limit_does_not_depend_on_what_was_compiled_before(make: Callable[[], tf.Grammar]) -> None:
    """The first automaton of a grammar takes over what reading has built: that counts as if built again.

    Masks that another automaton has made are no work: here none are shared.
    """

    def meets(grammar: tf.Grammar, work: int) -> bool:
        try:
            automaton = grammar.core.compile(VOCABULARY, tf.engine.Limits(work=work))
            automaton.mask(automaton.start)
        except LimitExceeded:
            return False
        return True

    seen, shared = set(), tf.engine.memory_held()["shared"][1]
    tf.engine.set_limits(shared=0)
    for work in [25 << n for n in range(12)]:
        tf.engine.clear_cache()
        grammar = make()
        first, again = meets(grammar, work), meets(grammar, work)
        assert first == again, work
        seen.add(first)
    tf.engine.set_limits(shared=shared)
    assert seen == {False, True}


def test_a_constraint_as_large_as_the_limit_is_not_made_anew_at_every_call() -> None:
    grammar = tf.json_schema({"enum": [{"a": i, "b": [i, {"c": str(i)}]} for i in range(1500)]})
    automaton = grammar.compile(VOCABULARY, limits=tf.engine.Limits(memory=4 << 20))
    state = automaton.start
    assert automaton.stats()["bytes"] > 4 << 20
    automaton.mask(state)
    assert automaton.allows(state, ord("{")) and not automaton.allows(state, ord("["))
    assert automaton.stats()["generations"] == 1


def test_thousands_of_optional_rules_hand_on_their_returns_in_linear_space() -> None:
    """Each ends with the next: written out for each, what they hand on filled 400 MB after one byte."""
    automaton = tf.gbnf("root ::= ([^x]*){0,9999}").compile(VOCABULARY)
    state = automaton.step_bytes(automaton.start, b"aba")
    assert automaton.is_accepting(state) and not automaton.allows(state, ord("x"))
    assert automaton.stats()["bytes"] < 16 << 20


def test_a_text_that_took_long_is_read_again_by_whoever_asks() -> None:
    """A limit that another request's call passes ends no text: one call makes again what was let go."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"01234", b"0123456789" * 400, b""]
    long, longer = 256, 257
    vocabulary = tf.Vocabulary(tokens, eos=[258])
    automaton = tf.gbnf('root ::= ([^a]* [^b]* [^c]*){1,40} "z"').compile(vocabulary)
    matchers = [tf.engine.Matcher(automaton), tf.engine.Matcher(automaton)]
    for count, matcher in zip((50, 44), matchers, strict=True):  # three portions are 44 tokens
        matcher.accept_tokens([long] * count)
    before = automaton.stats()
    with pytest.raises(LimitExceeded, match="the call needs more"):
        automaton.advance(automaton.start, longer)
    assert tf.engine.accept_tokens(matchers, [[ord("0")], [ord("z")]]) == {}
    assert [matcher.is_accepting() for matcher in matchers] == [False, True]
    assert automaton.stats()["ended_by_errors"] == before["ended_by_errors"] + 1


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc: memory can't be looked at")
def test_a_refused_call_leaves_no_memory_behind() -> None:
    """In a process of its own: what others have given back would hide what is kept."""
    code = """
from pathlib import Path
import tokenform as tf

def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

vocabulary = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])
tf.json_schema({"type": "integer"}).compile(vocabulary).matches(b"17")
before = held()
for _ in range(3):
    automaton = tf.regex("a?" * 2000 + "a" * 2000).compile(vocabulary)
    try:
        automaton.forced(automaton.start)
    except tf.errors.LimitExceeded:
        print(held() - before)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    left = [int(line) for line in run.stdout.split()]
    assert len(left) == 3 and max(left) < 64 << 20, left


def test_what_a_long_call_holds_is_counted_at_once() -> None:
    """300 long strings take a hundred megabytes to tell apart."""
    strings = {"type": "string", "minLength": 4096}
    schema = {"type": "array", "uniqueItems": True, "minItems": 300, "items": strings}
    automaton = tf.json_schema(schema).compile(VOCABULARY)
    automaton.mask(automaton.start)
    automaton.forced(automaton.start)
    assert automaton.stats()["ended_full"] == 0
    automaton.distance(automaton.start, 64)
    assert automaton.stats()["ended_full"] == 1 and automaton.stats()["bytes"] < 1 << 20
