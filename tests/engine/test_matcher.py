"""A matcher is its automaton's states in a row: whatever it took back, it never took."""

from __future__ import annotations

import copy
import doctest
import random
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.errors import BudgetTooSmall, InvalidState, LimitExceeded, OptionError, TokenRejected

WORDS = [b"true", b'": ', b'", "', b"name", b'{"', b'"}', b"[[", b"]]", b", ", b"12", b"0.5"]
TOKENS = [bytes([b]) for b in range(256)] + WORDS + [b"</s>", b"<end>"]
EOS = len(TOKENS) - 2
VOCABULARY = tf.Vocabulary(TOKENS, eos=[EOS, EOS + 1], special=[EOS, EOS + 1])
WIDTH = -(-len(TOKENS) // 32)
AUTOMATA = [
    grammar.compile(VOCABULARY)
    for grammar in (
        tf.json_schema({"type": "object", "additionalProperties": {"type": "integer"}}),
        tf.json_schema({"type": "array", "items": {"type": "string", "maxLength": 9}, "uniqueItems": True}),
        tf.regex(r"([a-z]{2,9}( |-))*[0-9]{1,40}"),
        tf.gbnf('root ::= t ("+" t)*\nt ::= [0-9]+ | "(" root ")"'),
    )
]


def mask_of(matcher: tf.engine.Matcher) -> list[int]:
    out = np.full((3, WIDTH), 5, np.uint32)
    matcher.fill_mask(out, 1)
    assert (out[[0, 2]] == 5).all()
    bits = np.unpackbits(out[1].view(np.uint8), bitorder="little")[: len(TOKENS)]
    ids: list[int] = np.flatnonzero(bits).tolist()
    assert ids == matcher.allowed_tokens().tolist()
    return ids


class Model:
    """What a matcher should be: the tokens, and the automaton asked from its start for each of them."""

    def __init__(self, automaton: tf.TokenAutomaton, most: int | None) -> None:
        self.automaton, self.most, self.tokens = automaton, most, list[int]()

    def states(self) -> list[tf.engine.State]:
        states = [self.automaton.start]
        for token in self.tokens:
            states.append(self.automaton.advance(states[-1], token))
        return states

    def agrees(self, matcher: tf.engine.Matcher) -> None:
        state = self.states()[-1]
        assert matcher.tokens == self.tokens and matcher.state == state
        assert matcher.is_accepting() == self.automaton.is_accepting(state)
        assert matcher.is_terminated() == self.automaton.is_finished(state)
        if self.most is None:
            want = self.automaton.mask(state)
        else:
            assert matcher.budget == max(self.most - len(self.tokens), 0)
            want = self.automaton.mask_within(state, matcher.budget)
        out = np.zeros((1, WIDTH), np.uint32)
        matcher.fill_mask(out)
        assert np.array_equal(out[0], want)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(range(len(AUTOMATA))), st.sampled_from([None, 7, 40]), st.randoms(), st.data())
def test_a_matcher_is_the_states_of_its_tokens(which: int, most: int | None, rng: Any, data: Any) -> None:
    matcher, model = tf.engine.Matcher(AUTOMATA[which], max_tokens=most), Model(AUTOMATA[which], most)
    others: list[tuple[tf.engine.Matcher, Model]] = []
    for action in data.draw(st.lists(st.sampled_from("aaaaarvfxk"), max_size=25)):
        allowed = mask_of(matcher)
        if action == "a" and allowed:
            token = rng.choice(allowed)
            matcher.accept_tokens([token])
            model.tokens.append(token)
        elif action == "r":
            count = rng.randint(0, len(model.tokens))
            matcher.rollback(count)
            model.tokens = model.tokens[: len(model.tokens) - count]
        elif action == "v":
            draft = [rng.randrange(len(TOKENS)) for _ in range(2)]
            assert matcher.validate_tokens(draft[:1]) == (draft[0] in allowed)
        elif action == "x":
            refused = [*set(range(len(TOKENS))) - set(allowed), len(TOKENS), 2**40, -1]
            begin = [rng.choice(allowed)] if allowed and rng.random() < 0.5 else []
            state = AUTOMATA[which].advance(matcher.state, begin[0]) if begin else None
            if state is not None:
                refused = [
                    t for t in refused if not AUTOMATA[which].allows(state, max(t, 0) % 2**32) or t < 0
                ]
            with pytest.raises(TokenRejected):
                matcher.accept_tokens([*begin, rng.choice(refused)])
        elif action == "f":
            twin = Model(model.automaton, most)
            twin.tokens = list(model.tokens)
            others.append((matcher.fork() if rng.random() < 0.5 else copy.deepcopy(matcher), twin))
        elif action == "k":
            matcher.reset()
            model.tokens = []
        model.agrees(matcher)
    for other, twin in others:
        twin.agrees(other)


@pytest.mark.parametrize("which", range(len(AUTOMATA)))
@pytest.mark.parametrize("most", [5, 12, 30])
def test_texts_end_within_max_tokens_whatever_is_drawn(which: int, most: int) -> None:
    rng = random.Random(most)
    for _ in range(15):
        matcher = tf.engine.Matcher(AUTOMATA[which], max_tokens=most)
        while not matcher.is_terminated():
            allowed = mask_of(matcher)
            # never ends before it must
            going = [token for token in allowed if token not in matcher.stop_token_ids]
            matcher.accept_tokens([rng.choice(going or allowed)])
        text = b"".join(TOKENS[token] for token in matcher.tokens[:-1])
        assert len(matcher.tokens) - 1 <= most and AUTOMATA[which].matches(text)


def test_a_budget_that_no_text_keeps_is_refused() -> None:
    automaton = tf.regex("[a-z]{20}").compile(VOCABULARY)
    with pytest.raises(BudgetTooSmall, match="max_tokens=4 tokens: the shortest known needs 20") as raised:
        tf.engine.Matcher(automaton, max_tokens=4)
    assert raised.value.least == 20
    # so far beyond the budget that no end was sought within it
    automaton = tf.json_schema({"type": "string", "minLength": 100_000}).compile(VOCABULARY)
    with pytest.raises(BudgetTooSmall) as raised:
        tf.engine.Matcher(automaton, max_tokens=9)
    assert raised.value.least is not None and f"needs {raised.value.least}" in str(raised.value)
    tf.engine.Matcher(automaton, max_tokens=raised.value.least)
    # more than is ever sought
    automaton = tf.json_schema({"type": "string", "minLength": 10**7}).compile(VOCABULARY)
    with pytest.raises(BudgetTooSmall, match="needs more than 9") as raised:
        tf.engine.Matcher(automaton, max_tokens=9)
    assert raised.value.least is None
    tight = tf.engine.Matcher(tf.regex("a{3}b*").compile(VOCABULARY), max_tokens=3)
    tight.accept_tokens(list(b"aaa"))
    assert tight.allowed_tokens().tolist() == tight.stop_token_ids == [EOS, EOS + 1]
    assert tight.validate_tokens([ord("b")]) == 0 and tight.validate_tokens([EOS]) == 1
    with pytest.raises(TokenRejected, match="max_tokens=3"):
        tight.accept_tokens([ord("b")])


def draft_tree(rng: random.Random, matcher: tf.engine.Matcher, size: int) -> tuple[list[int], list[int]]:
    tokens: list[int] = []
    parents: list[int] = []
    for place in range(size):
        parents.append(rng.randrange(-1, place))
        walk = [place]
        while parents[walk[-1]] != -1:
            walk.append(parents[walk[-1]])
        fork = matcher.fork()
        path = [tokens[at] for at in reversed(walk[1:])]
        allowed = []
        if fork.validate_tokens(path) == len(path):
            fork.accept_tokens(path)
            allowed = fork.allowed_tokens().tolist()
        tokens.append(rng.choice(allowed) if allowed and rng.random() < 0.8 else rng.randrange(len(TOKENS)))
    return tokens, parents


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("which", range(len(AUTOMATA)))
@pytest.mark.parametrize("most", [None, 20])
def test_rows_of_a_draft_are_those_of_its_paths(which: int, most: int | None, threads: int) -> None:
    rng = random.Random(which)
    for size in (0, 1, 5, 17):
        matcher = tf.engine.Matcher(AUTOMATA[which], max_tokens=most)
        tokens, parents = draft_tree(rng, matcher, size)
        out = np.full((size + 3, WIDTH), 7, np.uint32)
        may = matcher.fill_draft_masks(tokens, out, 1, parents=parents, threads=threads)
        assert matcher.tokens == [] and (out[0] == 7).all() and (out[-1] == 7).all()
        want = np.zeros(WIDTH, np.uint32)[None]
        matcher.fill_mask(want)
        assert np.array_equal(out[1], want[0])
        for place in range(size):
            path = [tokens[place]]
            at = parents[place]
            while at != -1:
                path.insert(0, tokens[at])
                at = parents[at]
            fork = matcher.fork()
            assert may[place] == (fork.validate_tokens(path) == len(path))
            if may[place]:
                fork.accept_tokens(path)
                fork.fill_mask(want)
                assert np.array_equal(out[place + 2], want[0])
            else:
                assert not out[place + 2].any()
        chain = matcher.fill_draft_masks(tokens, out, 1)
        assert chain.sum() == matcher.validate_tokens(tokens)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("most", [None, 20])
@pytest.mark.parametrize("met", [False, True])
def test_drafts_of_a_batch_are_those_of_each_matcher(most: int | None, threads: int, met: bool) -> None:
    rng = random.Random(7)
    for size in (0, 1, 4, 9):
        matchers = [tf.engine.Matcher(automaton, max_tokens=most) for automaton in AUTOMATA for _ in range(3)]
        drafts, rows, want = [], [], []
        for matcher in matchers:
            draft, walker = [], matcher.fork()
            for _ in range(rng.randint(0, size)):
                allowed = walker.allowed_tokens().tolist()
                draft.append(rng.choice(allowed) if allowed and rng.random() < 0.9 else -1)
                if walker.validate_tokens(draft[-1:]):
                    walker.accept_tokens(draft[-1:])
            block = np.zeros((len(draft) + 1, WIDTH), np.uint32)
            if met:
                matcher.fill_draft_masks(draft, block)
            drafts.append(draft)
            rows.append(len(want) + rng.randint(0, 2))
            want += [None] * (rows[-1] - len(want)) + [(matcher, draft, at) for at in range(len(draft) + 1)]
        out = np.full((len(want) + 1, WIDTH), 7, np.uint32)
        short = tf.engine.fill_draft_masks(matchers, drafts, out, rows=rows, threads=threads)
        counts = [matcher.validate_tokens(draft) for matcher, draft in zip(matchers, drafts, strict=True)]
        assert short == {i: n for i, n in enumerate(counts) if n < len(drafts[i])}
        for row, expected in zip(out, [*want, None], strict=True):
            single = np.full((1, WIDTH), 7, np.uint32)
            if expected is not None:
                matcher, draft, at = expected
                fork, single = matcher.fork(), np.zeros((1, WIDTH), np.uint32)
                if fork.validate_tokens(draft[:at]) == at:
                    fork.accept_tokens(draft[:at])
                    fork.fill_mask(single)
            assert np.array_equal(row, single[0])
        assert all(matcher.tokens == [] for matcher in matchers)


def test_a_draft_that_fails_leaves_the_others() -> None:
    hurried = tf.json_schema({"type": "string", "pattern": "^(?:|x(?=.*a.{9}b)(?=.*c.{8}d).*)$"}).compile(
        VOCABULARY, limits=tf.engine.Limits(work=30_000)
    )
    plain = AUTOMATA[2]
    matchers = [tf.engine.Matcher(plain), tf.engine.Matcher(hurried, max_tokens=30), tf.engine.Matcher(plain)]
    drafts, out = [[97, 98], [ord('"')], []], np.full((6, WIDTH), 7, np.uint32)
    failed = tf.engine.fill_draft_masks(matchers, drafts, out, errors="return")
    assert list(failed) == [1] and isinstance(failed[1], LimitExceeded)
    single = np.zeros((1, WIDTH), np.uint32)
    matchers[2].fill_mask(single)
    assert np.array_equal(out[5], single[0]) and np.array_equal(out[0], single[0])
    with pytest.raises(LimitExceeded):
        tf.engine.fill_draft_masks(matchers, drafts, out)


def test_a_batch_without_drafts_is_one_row_each_and_open_after_an_end() -> None:
    ended, other = tf.engine.Matcher(AUTOMATA[2]), tf.engine.Matcher(AUTOMATA[2])
    ended.accept_tokens([*b"7", EOS])
    for last in (0, 0xFFFFFFFF):
        out, single = np.full((4, WIDTH), 7, np.uint32), np.zeros((1, WIDTH), np.uint32)
        other.fill_mask(single)
        assert tf.engine.fill_draft_masks([ended, other], None, out, open_after_end=last != 0) == {}
        assert (out[0] == last).all() and np.array_equal(out[1], single[0]) and (out[2:] == 7).all()
        drafts = [[], (ord("7"), EOS)]
        assert tf.engine.fill_draft_masks([ended, other], drafts, out, open_after_end=last != 0) == {}
        assert (out[[0, 3]] == last).all() and np.array_equal(out[1], single[0])
        other.accept_tokens([ord("7")])
        other.fill_mask(single)
        assert np.array_equal(out[2], single[0])
        other.rollback(1)


def test_a_draft_that_does_not_fit_is_refused() -> None:
    matcher, out = tf.engine.Matcher(AUTOMATA[2]), np.zeros((3, WIDTH), np.uint32)
    for wrong in (
        lambda: matcher.fill_draft_masks([97, 98], out, 1),
        lambda: matcher.fill_draft_masks([97, 98], out, parents=[-1]),
        lambda: matcher.fill_draft_masks([97, 98], out, parents=[-1, 1]),
        lambda: matcher.fill_draft_masks([97, 98], out, parents=[-1, -2]),
        lambda: matcher.fill_mask(out, 3),
        lambda: matcher.fill_mask(out, 2**62),
        lambda: matcher.fill_mask(out[:, :-1]),
        lambda: matcher.fill_mask(b"x" * 36),
        lambda: tf.engine.fill_draft_masks([matcher], [], out),
        lambda: tf.engine.fill_draft_masks([matcher], [[97]], out, rows=[2]),
        lambda: tf.engine.fill_draft_masks([matcher, matcher], [[], [97]], out, rows=[1, 1]),
        lambda: tf.engine.fill_draft_masks([matcher, matcher], [[], []], out, rows=[1, 0]),
        lambda: tf.engine.fill_draft_masks([matcher], [[]], out, rows=[2**62]),
        lambda: tf.engine.fill_draft_masks([matcher], [[]], out[:, :-1]),
        lambda: tf.engine.accept_tokens([matcher], []),
    ):
        with pytest.raises(OptionError):
            wrong()
    with pytest.raises(InvalidState, match="only 0 were accepted"):
        matcher.rollback(1)


def test_forced_text_and_tokens() -> None:
    schema = {"properties": {"name": {"const": "é"}}, "required": ["name"]}
    automaton = tf.json_schema(schema, strings="canonical").compile(VOCABULARY)
    matcher = tf.engine.Matcher(automaton)
    matcher.accept_tokens(list(b'{"n'))
    assert matcher.forced_text().startswith('ame"')
    tokens = matcher.forced_tokens()
    assert b"".join(TOKENS[t] for t in tokens) == matcher.forced_text().encode()
    matcher.accept_tokens(tokens)
    tight = tf.engine.Matcher(tf.regex("name").compile(VOCABULARY), max_tokens=1)
    tight_tokens = tight.forced_tokens()
    assert tight_tokens == [TOKENS.index(b"name")]


@pytest.mark.parametrize("threads", [1, 4])
def test_matchers_and_states_in_one_batch(threads: int) -> None:
    rng = random.Random(3)
    matchers = [
        tf.engine.Matcher(automaton, max_tokens=most) for automaton in AUTOMATA for most in (None, 25)
    ]
    out, want = np.zeros((len(matchers), WIDTH), np.uint32), np.zeros((1, WIDTH), np.uint32)
    finished = np.zeros(len(matchers), bool)
    for _ in range(40):
        mixed = [m if rng.random() < 0.7 or m.max_tokens else m.state for m in matchers]
        assert tf.engine.fill_masks(mixed, out, finished=finished, threads=threads) == {}
        tokens: list[list[int]] = []
        for row, matcher in enumerate(matchers):
            matcher.fill_mask(want)
            assert np.array_equal(out[row], want[0]) and finished[row] == matcher.is_terminated()
            allowed = matcher.allowed_tokens().tolist()
            tokens.append([rng.choice(allowed)] if allowed else [])
        assert tf.engine.accept_tokens(matchers, tokens, threads=threads) == {}
    given_too = np.zeros((1, WIDTH), np.uint32)
    matcher = tf.engine.Matcher(AUTOMATA[0], max_tokens=25)
    tf.engine.fill_masks([matcher], given_too, budgets=[4])
    assert np.array_equal(given_too[0], AUTOMATA[0].mask_within(AUTOMATA[0].start, 4))
    failed = tf.engine.accept_tokens(
        [tf.engine.Matcher(AUTOMATA[0]), tf.engine.Matcher(AUTOMATA[2])],
        [[ord("?")], [ord("a")]],
        errors="return",
    )
    assert list(failed) == [0] and isinstance(failed[0], TokenRejected)


def test_threads_may_share_a_matcher() -> None:
    matcher, errors = tf.engine.Matcher(AUTOMATA[2]), list[Exception]()

    def work(seed: int) -> None:
        out = np.zeros((1, WIDTH), np.uint32)
        try:
            for _ in range(200):
                matcher.accept_tokens(list(b"ab "))
                matcher.fill_mask(out)
                matcher.validate_tokens(list(b"abc"))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and bytes(matcher.tokens) == b"ab " * 800


def test_a_call_that_is_cut_short_leaves_the_matcher_as_it_was() -> None:
    long = tf.Vocabulary(
        [bytes([b]) for b in range(256)] + [b"ac" * 60_000, b"</s>"], eos=[257], special=[257]
    )
    schema = {"type": "string", "pattern": "^(?=.*a.{9}b)(?=.*c.{7}d).*$"}
    matcher = tf.engine.Matcher(tf.json_schema(schema).compile(long, limits=tf.engine.Limits(work=60_000)))
    matcher.accept_tokens(list(b'"ac'))
    before = matcher.state
    with pytest.raises(LimitExceeded):
        matcher.accept_tokens([ord("a"), 256])
    with pytest.raises(LimitExceeded):
        matcher.validate_tokens([ord("a"), 256])
    assert matcher.tokens == list(b'"ac') and matcher.state == before
    matcher.accept_tokens([ord("a")])
    assert matcher.tokens == list(b'"aca')


def test_the_example_of_its_docstring_runs() -> None:
    lines = (tf.engine.Matcher.__doc__ or "").split(">>> ", 1)[1]
    test = doctest.DocTestParser().get_doctest(">>> " + lines, {}, "Matcher", None, 0)
    assert len(test.examples) > 8 and doctest.DocTestRunner().run(test).failed == 0


def test_a_grammar_that_is_not_compiled_is_named_with_the_way_out() -> None:
    for other in (tf.regex("a"), "a", None):
        with pytest.raises(tf.errors.OptionError, match=f"not a {type(other).__name__}; compile the grammar"):
            tf.engine.Matcher(other)  # type: ignore[arg-type]
