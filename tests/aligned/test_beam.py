"""Beam search and exact search against brute force; phrases; diversity; patience."""

from __future__ import annotations

import numpy as np
import pytest
from toy import EOS, TOKENS, StringsAutomaton, TableModel

import tokenform as tf
from tokenform.decoding.aligned.beam import Beam
from tokenform.decoding.aligned.best_span import BestSpan
from tokenform.decoding.aligned.enumeration import enumerate_target
from tokenform.decoding.aligned.phrases import Phrases
from tokenform.errors import OptionError, SamplingError


def ranked(exact, score=lambda x, v: v):
    return sorted(exact.log_measure, key=lambda x: -score(x, exact.log_measure[x]))


@pytest.mark.parametrize("seed", range(8))
def test_exact_search_finds_the_likeliest_texts_in_order(automaton, seed):
    sampler = Beam(None, best_first=True)
    problem = sampler.bind(TableModel(seed), automaton)
    draws = sampler.sample(problem, 5).draws
    exact = enumerate_target(problem)
    assert [d.tokens for d in draws] == ranked(exact)[:5]
    assert [d.logprob for d in draws] == pytest.approx([exact.log_measure[d.tokens] for d in draws])
    # and it does not look at everything
    model = TableModel(seed)
    sampler.sample(sampler.bind(model, automaton), 1)
    assert model.rows < 0.8 * problem.model.rows


@pytest.mark.parametrize("seed", range(4))
def test_exact_search_with_a_length_penalty(automaton, seed):
    sampler = BestSpan(length_penalty=1.0)
    problem = sampler.bind(TableModel(seed), automaton, max_tokens=5)
    best = ranked(enumerate_target(problem), lambda x, v: v / ((5 + len(x) + 1) / 6))
    assert [d.tokens for d in sampler.sample(problem, 3).draws] == best[:3]
    with pytest.raises(OptionError, match="max_tokens"):
        sampler.sample(sampler.bind(TableModel(seed), automaton), 1)


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_is_exact_and_a_narrow_one_is_a_valid_guess(automaton, seed):
    problem = Beam().bind(TableModel(seed), automaton)
    exact = enumerate_target(problem)
    wide = Beam(200, patience=10.0).sample(problem, 10).draws
    assert [d.tokens for d in wide] == ranked(exact)[:10]
    for sampler in (Beam(3), Beam(3, best_first=True), Beam(1)):
        best = sampler.sample(problem, 1).draws[0]
        assert best.logprob == pytest.approx(exact.log_measure[best.tokens])
        assert best.logprob <= wide[0].logprob + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_a_potential_ranks_texts_by_measure_and_score(automaton, seed):
    """Texts with many ones are wanted; the target is enumerated."""

    def ones(text):
        return 1.5 * text.count("1") - 7.5

    score = tf.samplers.Score(complete=ones, prefix=ones, log_bound=0.0)
    wide, first = Beam(200, patience=10.0, potential=score), Beam(None, best_first=True, potential=score)
    problem = wide.bind(TableModel(seed), automaton)
    want = ranked(enumerate_target(problem))  # its measure has the potential
    assert want != ranked(enumerate_target(Beam().bind(TableModel(seed), automaton)))
    assert [d.tokens for d in wide.sample(problem, 5).draws] == want[:5]
    assert [d.tokens for d in first.sample(problem, 5).draws] == want[:5]
    never = Beam(8, potential=tf.samplers.Score(complete=lambda text: -np.inf if text[0] == "1" else 0.0))
    assert never.sample(never.bind(TableModel(seed), automaton), 1).draws[0].text == "00000"
    with pytest.raises(OptionError, match="log_bound"):
        Beam(None, best_first=True, potential=tf.samplers.Score(complete=ones))


def test_width_one_is_greedy(automaton):
    problem = Beam().bind(TableModel(3), automaton)
    prefix, tokens = problem.root(), []
    while True:
        distribution = problem.distributions([prefix])[0]
        token = int(distribution.ids[np.argmax(distribution.logf)])
        if token == problem.eos:
            break
        tokens.append(token)
        prefix = problem.extend(prefix, token)
    assert Beam(1).sample(problem, 1).draws[0].tokens == tuple(tokens)


def test_patience_lets_the_search_go_on(automaton):
    problem = Beam().bind(TableModel(6), automaton)
    eager, patient = (Beam(12, patience=p, length_penalty=1.0).sample(problem, 1) for p in (0.1, 1.0))
    assert patient.counts.tokens > eager.counts.tokens
    best = ranked(enumerate_target(problem), lambda x, v: v / ((5 + len(x) + 1) / 6))
    assert best.index(patient.draws[0].tokens) <= best.index(eager.draws[0].tokens)


def test_diverse_groups_find_other_texts(automaton):
    for seed in range(6):
        problem = Beam().bind(TableModel(seed), automaton)
        same = Beam(5, groups=5, diversity=0.0).sample(problem, 5).draws
        assert len({d.tokens for d in same}) == 1
        diverse = Beam(5, groups=5, diversity=5.0).sample(problem, 5).draws
        assert len({d.tokens for d in diverse}) >= 3
        assert diverse[0].tokens == same[0].tokens or diverse[0].logprob > same[0].logprob


@pytest.mark.parametrize("include", [["0110"], ["11", "00"], ["101", "010"], ["1"]])
def test_phrases_are_in_every_text_and_the_best_is_found(automaton, include):
    for seed in range(4):
        problem = Beam().bind(TableModel(seed), automaton)
        exact = enumerate_target(problem)
        best = next(x for x in ranked(exact) if all(p.encode() in problem.bytes_of(x) for p in include))
        draws = Beam(60, include=include, patience=3.0).sample(problem, 1).draws
        assert all(p in d.text for d in draws for p in include)
        assert draws[0].tokens == best
        for draw in Beam(4, include=include).sample(problem, 1).draws:
            assert all(p in draw.text for p in include)


def test_phrases_that_plain_search_misses():
    """The likeliest texts all lack the phrase; a narrow beam with dynamic allocation still writes it."""
    strings = [format(i, "08b").encode() for i in range(256)]
    automaton = StringsAutomaton(strings)
    missed = 0
    for seed in range(5):
        problem = Beam().bind(TableModel(seed), automaton)
        missed += "110011" not in Beam(4).sample(problem, 1).draws[0].text
        assert "110011" in Beam(4, include=["110011"]).sample(problem, 1).draws[0].text
    assert missed >= 3


@pytest.mark.parametrize("data", [b"abababc", b"aaab", b"xabcabcd", b"", b"ababab", b"caab"])
def test_phrase_progress_is_substring_search(data):
    phrases = Phrases(["ab", "aab", b"ababc", "c"])
    for cut in range(len(data) + 1):
        progress = phrases.feed(phrases.feed(phrases.start, data[:cut]), data[cut:])
        assert phrases.count_complete(progress) == sum(p in data for p in phrases.phrases)
        for phrase, at in zip(phrases.phrases, progress, strict=True):
            if phrase not in data:
                assert at == max(k for k in range(len(phrase)) if data.endswith(phrase[:k]))


def test_best_span_of_a_source():
    source = "1001101011"
    spans = sorted({source[i:j].encode() for i in range(10) for j in range(i + 1, 11)})
    automaton = StringsAutomaton(spans)
    for seed in range(5):
        sampler = BestSpan(source)
        problem = sampler.bind(TableModel(seed), automaton)
        draw = sampler.sample(problem, 1).draws[0]
        exact = enumerate_target(problem)
        assert draw.tokens == ranked(exact)[0]
        places = sampler.locate(draw)
        assert places
        assert all(source[a:b] == draw.text for a, b in places)


def test_the_empty_span_is_no_answer_unless_it_is_asked_for():
    grammar = tf.substring("Ada was born in 1815.", by="word")
    vocabulary = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])
    automaton = grammar.compile(vocabulary)

    class Ending:
        """Ends a text with probability 0.9 wherever it may."""

        eos, vocab_size, forwards, rows = (256,), 257, 0, 0

        def logprobs(self, prefixes):
            distribution = np.full((len(prefixes), 257), np.log(0.1 / 256))
            distribution[:, 256] = np.log(0.9)
            return distribution

    spans = []
    for sampler in (BestSpan(), BestSpan(empty=True)):
        problem = sampler.bind(Ending(), automaton, (1,), 8)
        spans.append(sampler.sample(problem, 1).draws[0].text)
    assert spans[0] and spans[0] in "Ada was born in 1815." and spans[1] == ""


def test_what_can_not_be_searched_is_refused(automaton):
    for options in (
        {"width": 0},
        {"width": None},
        {"width": 4, "groups": 3},
        {"patience": 0.0},
        {"best_first": True, "include": ["1"]},
    ):
        with pytest.raises(OptionError):
            Beam(**options)
    with pytest.raises(OptionError):
        Beam(include=[""])
    with pytest.raises(SamplingError):
        Beam(4, include=["0110011"]).sample(Beam().bind(TableModel(0), automaton), 1)
    assert TOKENS.index(b"<eos>") == EOS
