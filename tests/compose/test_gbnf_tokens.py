"""Tokens by number and by text in GBNF: `<[98]>`, `<think>`, `!<think>`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tokenform as tf
from tokenform.errors import InvalidGrammar, VocabularyError

TOKENS = [*(bytes([byte]) for byte in range(256)), b"<think>", b"</think>", b"bc", b"ends"]
OPEN, CLOSE, PAIR, END = 256, 257, 258, 259
VOCABULARY = tf.Vocabulary(TOKENS, eos=[END], special=[OPEN, CLOSE, END])
BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])


def taken(automaton: tf.TokenAutomaton, ids: list[int]) -> bool:
    state = automaton.start
    for token in ids:
        row = automaton.mask(state).view(np.uint8)
        found = [int(i) for i in np.flatnonzero(np.unpackbits(row, bitorder="little"))]
        assert found == list(automaton.oracle(state))
        if token not in found:
            return False
        state = automaton.advance(state, token)
    return bool(automaton.is_accepting(state))


def test_tokens_by_number_are_those_tokens() -> None:
    automaton = tf.gbnf('root ::= "a" <[98]> (!<[99]>)* <[99]>').compile(BYTES)
    for text in ("abc", "abxyc", "abéc"):
        assert taken(automaton, list(text.encode())), text
    for text in ("ac", "ab", "abcc", "abxcyc"):
        assert not taken(automaton, list(text.encode())), text


WORDS = """root ::= item+ END
item ::= [a-c]+ " " | "(" item ")" | "bc" """


@pytest.mark.parametrize("rules", [WORDS, WORDS + '| item "b" item'], ids=["by a lexer", "ambiguous"])
def test_a_token_by_number_is_its_character_in_every_mask(rules: str) -> None:
    by_number = tf.gbnf(rules.replace("END", "<[59]>")).compile(VOCABULARY)
    by_character = tf.gbnf(rules.replace("END", '";"')).compile(VOCABULARY)
    for text in (b"abc (a );", b"((bc))bc;", b"bbcb bc;"):
        one, other = by_number.start, by_character.start
        for token in text:
            assert (by_number.mask(one) == by_character.mask(other)).all()
            one, other = by_number.advance(one, token), by_character.advance(other, token)
        assert by_number.is_accepting(one) and by_character.is_accepting(other)


def test_a_grammar_is_the_same_within_another() -> None:
    alone, rest = tf.gbnf(WORDS.replace("END", "<[256]>")), tf.regex("[0-9]{2}")
    joint, text = (alone + rest).compile(VOCABULARY), [*b"(a )bc", OPEN, 49, 50]
    assert taken(joint, text)
    assert not taken(joint, text[:-1]) and not taken(joint, [*b"(a bc", OPEN, 49, 50])
    without = alone.compile(VOCABULARY)
    state, own = joint.start, without.start
    for token in text[:-3]:
        assert (joint.mask(state) == without.mask(own)).all()
        state, own = joint.advance(state, token), without.advance(own, token)


def test_special_tokens_by_text_and_by_number() -> None:
    by_text = tf.gbnf("root ::= <think> thought </think> [0-9]+\nthought ::= !</think>*").compile(VOCABULARY)
    by_number = tf.gbnf("root ::= <[256]> !<[257]>* <[257]> [0-9]+").compile(VOCABULARY)
    thoughts: list[list[int]] = [[], list(b"hm"), list("é</think>".encode()), [OPEN], [97, OPEN, PAIR]]
    for automaton, inside in itertools.product((by_text, by_number), thoughts):
        assert taken(automaton, [OPEN, *inside, CLOSE, 49])
        assert not taken(automaton, [*inside, CLOSE, 49]) or inside[:1] == [OPEN]
        assert not taken(automaton, [OPEN, *inside, 49])
        assert not taken(automaton, [OPEN, *inside, CLOSE])
        assert not taken(automaton, [*b"<think>x", CLOSE, 49])
    assert by_text.distance(by_text.start) == 3


def test_in_a_vocabulary_without_it_a_token_by_text_is_its_text() -> None:
    automaton = tf.gbnf('root ::= <think> "x"').compile(BYTES)
    assert taken(automaton, list(b"<think>x")) and not taken(automaton, list(b"x"))


def test_beside_other_grammars() -> None:
    grammar = tf.gbnf("root ::= <think> !</think>* </think>") + tf.json_schema({"type": "integer"})
    automaton = grammar.compile(VOCABULARY)
    assert taken(automaton, [OPEN, 97, CLOSE, 49]) and not taken(automaton, [OPEN, 97, CLOSE, 97])


@pytest.mark.parametrize(
    "text", ["!<think>", '"a" !<think> "b"', "!<think>?", "!<think>{2}", "(!<think> | [a])"]
)
def test_one_other_token_is_no_language(text: str) -> None:
    with pytest.raises(InvalidGrammar, match="repetition") as caught:
        tf.gbnf(f"root ::= {text}")
    assert caught.value.column is not None


@pytest.mark.parametrize("text", ["<[9999]>", "<[200]>", "!<[258]>*"])
def test_what_a_vocabulary_gives_no_meaning_is_refused(text: str) -> None:
    without = tf.Vocabulary([b"a", b"\xc3", b"bc", *[b"x"] * 300, b"bcd", b""], eos=[304], special=[304])
    grammar = tf.gbnf(f"root ::= {text}")
    if text == "!<[258]>*":
        grammar = tf.gbnf("root ::= !<[2]>*")
    if text == "<[200]>":
        grammar = tf.gbnf("root ::= <[1]>")
    with pytest.raises(VocabularyError):
        grammar.compile(without)


@pytest.mark.parametrize("text", ["<", "<[a]>", "<>", "! <a>", "<a b>"])
def test_tokens_that_are_not_spelled_so(text: str) -> None:
    with pytest.raises(InvalidGrammar, match="<\\[id\\]>"):
        tf.gbnf(f"root ::= {text}")
