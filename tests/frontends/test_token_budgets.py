"""Parts that end after a number of tokens: `max_tokens` of structural tags and of XGrammar's EBNF."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

import tokenform as tf
from tokenform.errors import InvalidGrammar, LimitExceeded
from tokenform.frontends import forms
from tokenform.frontends.grammar import Grammar

TOKENS = [bytes([b]) for b in range(256)] + [b"ab", b"abc", b"</a", b"b</a>", b">x", b"</a><a>", b""]
END = len(TOKENS) - 1
VOCABULARY = tf.Vocabulary(TOKENS, eos=[END], special=[END])


def tag(content: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": "<a>", "content": content, "end": "</a>"}


def text(most: int, **more: Any) -> dict[str, Any]:
    return {"type": "any_text", "max_tokens": most, **more}


def automaton(format: dict[str, Any]) -> tf.TokenAutomaton:
    return tf.tool_formats.structural_tag({"format": format}).compile(VOCABULARY)


def refused_at(over: tf.TokenAutomaton, tokens: list[int]) -> int | None:
    """The first token that is not allowed; masks say the same."""
    state = over.start
    for at, token in enumerate(tokens):
        allowed = over.allows(state, token)
        assert allowed == (token in over.allowed_tokens(state))
        if not allowed:
            return at
        state = over.advance(state, token)
    return None if over.is_accepting(state) else len(tokens)


@pytest.mark.parametrize(
    ("most", "tokens", "refused"),
    [
        (2, [*b"<a>xy</a>"], None),
        (2, [*b"<a>xyz"], 5),
        (2, [*b"<a>", 256, 257, *b"</a>"], None),
        (2, [*b"<a>", 256, 257, 256], 5),
        (2, [*b"<a>x", 259], None),
        (1, [*b"<a>x", 259], 4),
        (2, [*b"<a", 260, *b"yz</a>"], None),  # the token that leads into the part is not counted
        (2, [*b"<a", 260, *b"yzu"], 5),
        (1, [*b"<a>", *"é".encode(), *b"</a>"], None),  # a character is read to its end
        (1, [*b"<a>", *"é".encode(), *b"x"], 5),
        (0, [*b"<a></a>"], None),
        (0, [*b"<a>x"], 3),
    ],
)
def test_a_part_ends_after_its_tokens(most: int, tokens: list[int], refused: int | None) -> None:
    assert refused_at(automaton(tag(text(most))), tokens) == refused


def test_texts_are_not_counted() -> None:
    assert automaton(tag(text(1))).matches(b"<a>many characters</a>")


def test_each_part_has_its_own_budget() -> None:
    over = automaton({"type": "star", "content": tag(text(2))})
    assert refused_at(over, [*b"<a>xy</a><a>xy</a>"]) is None
    assert refused_at(over, [*b"<a>xy</a><a>xyz"]) == 14
    assert refused_at(over, [*b"<a>x", 261, *b"yz</a>"]) is None


def test_what_follows_may_begin_earlier() -> None:
    follows = {"type": "const_string", "value": "xx"}
    over = automaton({"type": "sequence", "elements": [text(2), follows]})
    assert refused_at(over, [*b"xxxx"]) is None and refused_at(over, [*b"xx"]) is None
    assert refused_at(over, [*b"xxxxx"]) == 4


def test_tokens_are_counted_as_a_count_of_first_bytes_says() -> None:
    """Random tokens beside a count over the text."""
    rng = random.Random(0)
    both = [0, 0]
    for _ in range(1500):
        most = rng.choice([1, 2, 3])
        inside = rng.choices([97, 98, 120, 256, 257, 258, 259, 60], k=rng.choice([0, 1, 2, 3, 4]))
        tokens = [60, 97, *rng.choice([[62], [260]]), *inside, *rng.choice([[*b"</a>"], [259], [258, 62]])]
        whole = b"".join(TOKENS[token] for token in tokens)
        end = whole.find(b"</a>")
        starts = np.cumsum([0, *(len(TOKENS[token]) for token in tokens)])[:-1]
        used = sum(3 <= start < end for start in starts)
        right = bool(end == len(whole) - 4 and used <= most)
        both[right] += 1
        over = OVER.setdefault(most, automaton(tag(text(most))))
        assert (refused_at(over, tokens) is None) == right, (most, [TOKENS[token] for token in tokens])
    assert min(both) > 200


OVER: dict[int, tf.TokenAutomaton] = {}
EBNF = [
    'root ::= "<" x ">"\nx[max_tokens=2] ::= [a-c]*',
    'root ::= "<" x "x"?\nx[max_tokens=2] ::= "abc" | [a-c]{4}',
    'root ::= ("<" x)+ ">x"\nx[max_tokens=1] ::= ("ab")*',
    'root ::= x | "q"\nx[max_tokens=3] ::= [^x]*',
    "root ::= x y\nx[max_tokens=2] ::= [ab]*\ny ::= [bc]*",
    'root ::= "<" x ">"\nx[max_tokens=0] ::= [a-c]*',
    'root ::= "<" x ">"\nx[max_tokens=2, max_chars=3] ::= [a-c]*',
]
TAGS = [
    tag(text(2)),
    text(2, excludes=["ab"]),
    tag(text(3, max_chars=2)),
    {"type": "star", "content": tag({"type": "optional", "content": tag(text(1))})},
    {"type": "triggered_tags", "triggers": ["<a"], "tags": [tag(text(2))]},
    {"type": "sequence", "elements": [text(2), {"type": "const_string", "value": "ab"}, text(1)]},
    {"type": "or", "elements": [text(1), {"type": "const_string", "value": "abab"}]},
]


@pytest.mark.parametrize("constraint", [*EBNF, *TAGS], ids=str)
def test_masks_are_those_of_xgrammar(constraint: Any) -> None:
    xgrammar = pytest.importorskip("xgrammar")
    info = xgrammar.TokenizerInfo([*TOKENS[:-1], b"</s>"], stop_token_ids=[END])
    compiler = xgrammar.GrammarCompiler(info)
    if isinstance(constraint, str):
        compiled, over = compiler.compile_grammar(constraint), tf.gbnf(constraint, dialect="xgrammar")
    else:
        whole = {"type": "structural_tag", "format": constraint}
        compiled = compiler.compile_structural_tag(json.dumps(whole))
        over = tf.tool_formats.structural_tag(whole)
    ours, rng = over.compile(VOCABULARY), random.Random(0)
    for _ in range(40):
        matcher, bitmap = xgrammar.GrammarMatcher(compiled), xgrammar.allocate_token_bitmask(1, len(TOKENS))
        state, written = ours.start, []
        for _ in range(10):
            matcher.fill_next_token_bitmask(bitmap)
            bits = np.unpackbits(bitmap.numpy().view(np.uint8), bitorder="little")[: len(TOKENS)]
            # XGrammar takes bytes that begin no character of UTF-8
            theirs = {token for token in np.flatnonzero(bits).tolist() if not 128 <= token < 256}
            mine = {token for token in ours.allowed_tokens(state).tolist() if not 128 <= token < 256}
            assert mine == theirs, written
            token = rng.choice([token for token in theirs if token in [*b"<a/>bcx"] or token > 255] or [END])
            if token == END:
                break
            matcher.accept_token(token)
            state = ours.advance(state, token)
            written.append(TOKENS[token])


def test_what_was_written_and_read_again_counts() -> None:
    made = tf.tool_formats.structural_tag({"format": tag(text(1))})
    again = tf.Grammar.from_bytes(made.to_bytes()).compile(VOCABULARY)
    assert refused_at(again, [*b"<a>xy"]) == 4


def test_budgets_of_parts_and_of_texts_meet() -> None:
    over = automaton(tag(text(3)))
    for most in range(7, 12):
        for seed in range(5):
            rng, matcher = random.Random(seed), tf.engine.Matcher(over, max_tokens=most)
            tokens: list[int] = []
            while END not in tokens:
                tokens.append(int(rng.choice(matcher.allowed_tokens().tolist())))
                matcher.accept_tokens(tokens[-1:])
            assert len(tokens) <= most + 1 and refused_at(over, tokens[:-1]) is None


def test_a_model_stays_within_the_budget() -> None:
    pytest.importorskip("torch")
    think = tag({"type": "any_text", "max_tokens": 4})
    answer = {"type": "json_schema", "json_schema": {"type": "integer"}}
    made = tf.tool_formats.structural_tag({"format": {"type": "sequence", "elements": [think, answer]}})
    result = tf.generate("Think, then count to 3.", made, max_tokens=60)
    bytes_of = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256])
    assert made.compile(bytes_of).matches(result.text.encode())
    assert result.text.index("</a>") <= 3 + 4 * 24  # a token has at most so many characters


def test_tokens_can_not_be_counted_within_a_json_string() -> None:
    hole = {"counted": {"regex": "a*", "dialect": "python"}, "tokens": 2}
    with pytest.raises(InvalidGrammar, match="counted within a JSON string"):
        forms.compiled({"schema": '{"type":"string"}', "options": {}, "holes": [hole]}, "it")


@pytest.mark.parametrize("most", [-1, 1.5, True, "2"])
def test_a_budget_is_a_number(most: Any) -> None:
    with pytest.raises(InvalidGrammar) as raised:
        tf.tool_formats.structural_tag({"format": tag(text(most))})
    assert raised.value.pointer == "/format/content"


def test_the_type_of_a_compiled_tag() -> None:
    assert isinstance(tf.tool_formats.structural_tag({"format": text(1)}), Grammar)


def test_a_canvas_refuses_budgets_of_tokens() -> None:
    with pytest.raises(LimitExceeded, match="budget of tokens"):
        tf.Canvas(automaton(tag(text(2))), 9).feasible()


LETTERS = "".join(chr(code) for code in range(33, 127))
MANY = [*(bytes([b]) for b in range(256)), *((a + b).encode() for a in LETTERS for b in LETTERS)]
MANY += [b"x</a>", b"</a>.", b"</a><", b"a</a>b", "é</a".encode(), b"\xa9x", b""]


@pytest.mark.parametrize("most", [None, 3])
@pytest.mark.parametrize("around", ["tag", "sequence", "joined"])
def test_masks_of_open_text_are_those_of_its_tokens(around: str, most: int | None) -> None:
    """Over a vocabulary of which most tokens stay in the text: each token is tried without a mask."""
    vocabulary = tf.Vocabulary(MANY, eos=[len(MANY) - 1], special=[len(MANY) - 1])
    free = {"type": "any_text"} if most is None else text(most)
    format = (
        tag(free) if around == "tag" else {"type": "sequence", "elements": [free, tag({"type": "any_text"})]}
    )
    if around == "joined":
        grammar = tf.regex("(?s).*", dialect="python") + tf.regex("[0-9]{2}")
    else:
        grammar = tf.tool_formats.structural_tag({"format": format})
    masks, tried = grammar.compile(vocabulary), grammar.compile(vocabulary)
    for written in (b"", b"<a", b"<a>", b"<a>x", b"<a>x<", b"<a>x</a", b"12", b"<a>\xc3", b"<a>xyz"):
        ours, other = masks.start, tried.start
        try:
            for byte in written:
                ours, other = masks.advance(ours, byte), tried.advance(other, byte)
        except tf.errors.TokenRejected:
            continue
        right = [token for token in range(len(MANY)) if tried.allows(other, token)]
        assert masks.allowed_tokens(ours).tolist() == right, written


def test_budgets_are_not_lost_on_the_way_elsewhere() -> None:
    made = tf.tool_formats.structural_tag({"format": tag(text(2))})
    with pytest.raises(InvalidGrammar, match="GBNF counts no tokens"):
        made.to_gbnf()
    with pytest.raises(tf.errors.TokenformError):
        tf.engine.certify(made, VOCABULARY, [*b"<a>x</a>"])
    both = (made + tf.regex("[0-9]")).compile(VOCABULARY)
    assert refused_at(both, [*b"<a>xy</a>7"]) is None and refused_at(both, [*b"<a>xyz"]) == 5


@pytest.mark.parametrize("most", [2**31, 10**30])
def test_a_budget_beyond_all_texts_is_none(most: int) -> None:
    assert refused_at(automaton(tag(text(most))), [*b"<a>" + b"x" * 50 + b"</a>"]) is None
    ebnf = tf.gbnf(f"root ::= x\nx[max_tokens={most}] ::= [a-c]*", dialect="xgrammar")
    assert refused_at(ebnf.compile(VOCABULARY), [*b"abc" * 20]) is None
