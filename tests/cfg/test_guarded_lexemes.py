"""Terminals that begin alike where only some lead on: masks are empty nowhere, inside lexemes either."""

from __future__ import annotations

import itertools
from functools import cache

import interegular
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import TokenformError, TokenRejected, UnsatisfiableGrammar

LETTERS = "ab( éê"
TOKENS = [*(bytes([byte]) for byte in range(256)), b"ab", b"bb(", "aé".encode(), "é".encode()]
TOKENS += [b"b\xc3", b"\xaaa", " bê".encode(), b"((", b"  ", b"a b"]
VOCABULARY = tf.Vocabulary([*TOKENS, b"</s>"], eos=[len(TOKENS)], special=[len(TOKENS)])
TEXTS = ["".join(letters) for n in range(4) for letters in itertools.product(LETTERS, repeat=n)]
TEXTS += [a + b for a in ("((", "(a", "(é", "bb") for b in TEXTS[-216:]]

TERMINALS = [
    "[ab]+",
    "a",
    "b",
    "ab",
    "a[ab]*",
    "b(ab)*",
    "é+",
    "ê",
    "[éê]",
    "aé",
    "aê?",
    "b[^a]*",
    "(b|é)+",
    "a b",
]
IGNORED = ["", " ", " +", " [^b]*b", "[ ê]+", " | a"]
# `(` keeps the rules from being one pattern
SYMBOLS = ["T0", "T1", "T2", "r", '"(" start']
BODIES = st.lists(st.sampled_from(SYMBOLS), min_size=1, max_size=3).map(tuple)
RULES = st.tuples(*[st.lists(BODIES, min_size=1, max_size=2, unique=True)] * 2)


@cache
def machine(pattern: str) -> interegular.FSM:
    return interegular.parse_pattern(pattern).to_fsm()


def read(pattern: str, text: str) -> bool | None:
    """Whether a text is one of the pattern's; `None` where it begins one and is none."""
    fsm, state = machine(pattern), machine(pattern).initial
    for letter in text:
        state = fsm.map.get(state, {}).get(fsm.alphabet[letter])
        if state is None or not fsm.islive(state):
            return False
    return True if state in fsm.finals else None


Item = tuple[str, tuple[str, ...], int, int]


class Judge:
    """A contextual lexer that never goes back, before Earley's parser; no rule is empty."""

    def __init__(
        self, rules: dict[str, list[tuple[str, ...]]], patterns: dict[str, str], ignored: str
    ) -> None:
        self.rules, self.patterns, self.ignored = rules, patterns, ignored

    def closed(self, sets: list[set[Item]], last: set[Item]) -> set[Item]:
        """The items of a new set with those that they predict and complete."""
        todo, seen = list(last), set(last)
        while todo:
            head, body, dot, origin = todo.pop()
            if dot == len(body):
                found = [(h, b, d + 1, o) for h, b, d, o in sets[origin] if b[d : d + 1] == (head,)]
            else:
                found = [(body[dot], b, 0, len(sets)) for b in self.rules.get(body[dot], [])]
            todo += [item for item in found if item not in seen]
            seen.update(found)
        return seen

    def accepts(self, text: str) -> bool:
        sets = [self.closed([], {("start", body, 0, 0) for body in self.rules["start"]})]
        at = 0
        while at < len(text):
            readable = {
                b[d]: self.patterns[b[d]] for _, b, d, _ in sets[-1] if b[d : d + 1] and b[d] in self.patterns
            }
            if self.ignored:
                readable["ignored"] = self.ignored
            end = at + 1
            while end <= len(text) and any(read(p, text[at:end]) is not False for p in readable.values()):
                end += 1
            lexeme = text[at : end - 1]
            ended = [name for name, p in readable.items() if lexeme and read(p, lexeme)]
            if not ended:
                return False
            at, chosen = end - 1, min(ended, key=self.rank)
            if chosen != "ignored":
                sets.append(
                    self.closed(
                        sets, {(h, b, d + 1, o) for h, b, d, o in sets[-1] if b[d : d + 1] == (chosen,)}
                    )
                )
        return any(h == "start" and d == len(b) and o == 0 for h, b, d, o in sets[-1])

    def rank(self, name: str) -> tuple[bool, int, int, str]:
        """Lark's order: literals, then the longer pattern, then the name."""
        pattern = self.patterns.get(name, self.ignored)
        return (name != "OPEN", -longest(pattern), -len(pattern), name)


def longest(pattern: str) -> int:
    """The longest text of a pattern, as far as Python's parser of patterns tells it."""
    from re import _parser  # what Lark asks

    return min(int(_parser.parse(pattern).getwidth()[1]), 1 << 16)


def ids(row: np.ndarray) -> list[int]:
    return [int(i) for i in np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))]


def check_states(automaton: tf.Automaton, source: str) -> None:
    """Every state within some tokens: its mask is the oracle's and allows something."""
    states = [automaton.start]
    for _ in range(4):
        following = []
        for state in dict.fromkeys(states):
            allowed = ids(automaton.mask(state))
            assert allowed, source
            assert allowed == list(automaton.oracle(state)), source
            some = [t for t in allowed if t >= 256 or chr(t) in LETTERS or t in (0xC3, 0xA9, 0xAA)]
            following += [automaton.advance(state, t) for t in some if t < len(TOKENS)]
        states = following[:60]


@settings(deadline=None, max_examples=250, suppress_health_check=list(HealthCheck))
@given(
    RULES, st.lists(st.sampled_from(TERMINALS), min_size=3, max_size=3, unique=True), st.sampled_from(IGNORED)
)
@example(([("T0", "T1"), ("T2",)], [("T0",)]), ["[ab]+", "b", "a"], "")
@example(([("T0", "T2"), ("T1",)], [("T1",)]), ["b[^a]*", "(b|é)+", "ê"], "")
@example(([("T1", "T0", "T2")], [("T1",)]), ["b[^a]*", "a", "ê"], " ")
def test_no_state_without_an_end(
    rules: tuple[list[tuple[str, ...]], list[tuple[str, ...]]], patterns: list[str], ignored: str
) -> None:
    start, r = ([*rules[0]], [*rules[1], ("T0",)])
    bodies = {"start": start, "r": r}
    source = "\n".join(
        f"{k}: " + " | ".join(" ".join(b) for b in dict.fromkeys(v)) for k, v in bodies.items()
    )
    source += "\n" + "\n".join(f"T{i}: /{p}/" for i, p in enumerate(patterns))
    source += f"\n%ignore /{ignored}/\n" if ignored else "\n"
    flat = {k: [tuple(" ".join(b).replace('"("', "OPEN").split()) for b in v] for k, v in bodies.items()}
    judge = Judge(flat, {"OPEN": r"\(", **{f"T{i}": p for i, p in enumerate(patterns)}}, ignored)
    try:
        automaton = tf.lark(source).compile(VOCABULARY)
    except UnsatisfiableGrammar:
        assert not any(judge.accepts(text) for text in TEXTS), source
        return
    except TokenformError:
        return  # the limit on work
    for text in TEXTS:
        assert (automaton.check(text.encode()) is None) == judge.accepts(text), (source, text)
    check_states(automaton, source)


def test_a_lexeme_may_not_grow_into_one_that_leads_nowhere() -> None:
    """After `(b` another `b` would be a C that needs what no text can be."""
    source = 'start: "(" (A "a" | C D) | "(" start\nA: /b/\nC: /b[^a]+/\nD: /b/\n'
    automaton = tf.lark(source).compile(VOCABULARY)
    state = automaton.start
    for byte in b"(b":
        state = automaton.advance(state, TOKENS.index(bytes([byte])))
    assert [TOKENS[t] for t in ids(automaton.mask(state)) if len(TOKENS[t]) == 1] == [b"a"]
    with pytest.raises(TokenRejected, match=r'expected "a"$'):  # not what a C reads on with
        automaton.advance(state, TOKENS.index(b"b"))


@pytest.mark.parametrize("ignored", ["", "%ignore / +/\n"])
def test_what_follows_may_begin_with_the_same_byte(ignored: str) -> None:
    """`é` and `ê` share their first byte in UTF-8."""
    automaton = tf.lark(f'start: "(" start | A B\nA: /é+/\nB: /ê/\n{ignored}').compile(VOCABULARY)
    assert automaton.check("(ééê".encode()) is None
    assert automaton.check("(éêê".encode()) is not None


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        (tf.gbnf('root ::= word ("、" root)? "。"?\nword ::= [ぁ-んァ-ヶ一-龥]+'), "あい、山。"),
        (tf.lark('start: (WORD | "(" start ")")+\nWORD: /\\w+/\n%ignore /\\s+/\n'), "あ\u3000い (い\u00a0é)"),
    ],
)
def test_scripts_of_several_bytes(grammar: tf.Grammar, text: str) -> None:
    automaton = grammar.compile(VOCABULARY)
    state = automaton.start
    for byte in text.encode():
        assert ids(automaton.mask(state)) == list(automaton.oracle(state))
        state = automaton.advance(state, byte)
    assert automaton.is_accepting(state)
