"""A bare value that stands in the prompt: the judge weighs the greedy text against each part of the prompt, by
plain passes of its own."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import tokenform as tf
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.speculative import live, standing
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.matching import DeviceDraws
from tokenform.decoding.speculative.request import Request
from tokenform.decoding.speculative.speculator import Speculator

from .judge import generator, logprobs, text_logprob, written_alike

GREEDY = tf.Local(0.0)
PROMPTS = [
    "the new york no! newark, none of these",
    "no: 12, 7.5 and 100 (new york)",
    "Zürich, The Hague",
    "the plant kingdom; the plant, kingdom",
]
PATTERNS = [r"[a-z]+", r"\d+(\.\d+)?", r"[a-z]{2,9} [a-z]+", r"\w+"]


def parts(prompt: str, pattern: str) -> list[str]:
    begins = [at for at in range(len(prompt)) if not (at and prompt[at - 1].isalnum())]
    ends = [at for at in range(1, len(prompt) + 1) if at == len(prompt) or not prompt[at].isalnum()]
    found = [prompt[begin:end] for begin in begins for end in ends if begin < end]
    return sorted({text for text in found if re.fullmatch(pattern, text)})


def greedy(monkeypatch, gen: tf.Generator, prompt: str, pattern: str, budget: int = 30) -> tf.Result:
    """What is written where nothing is weighed."""
    with monkeypatch.context() as patched:
        patched.setattr(live, "weighing", lambda one: None)
        return gen.sample(prompt, tf.regex(pattern), sampler=GREEDY, max_tokens=budget)[0]


def token_text(gen: tf.Generator, token: int) -> str:
    """What a token adds to a text; what no pattern has for the end."""
    return "\n" if token in gen.vocabulary.eos else gen.vocabulary.token(token).decode(errors="replace")


def judged(monkeypatch, gen: tf.Generator, prompt: str, pattern: str) -> tuple[str, str]:
    """The text that wins, and the greedy one."""
    ids, eos = list(gen.prompt_ids(prompt)), gen.vocabulary.eos
    written = greedy(monkeypatch, gen, prompt, pattern)
    table = logprobs(gen.model, [*ids, *written.tokens])[len(ids) - 1 :]
    *best, after = table.argmax(-1).tolist()
    free = best == list(written.tokens) and not re.fullmatch(pattern, written.text + token_text(gen, after))
    scores = {
        text: text_logprob(gen.model, ids, gen.spell(text.encode()), eos) for text in parts(prompt, pattern)
    }
    own = text_logprob(gen.model, ids, written.tokens, eos)
    if free or not scores or own >= max(scores.values()):
        return written.text, written.text
    return max(scores, key=scores.__getitem__), written.text


@pytest.mark.parametrize("drafter", [None, "auto"])
def test_the_likeliest_of_the_greedy_text_and_the_prompts_parts_is_written(monkeypatch, drafter: Any) -> None:
    outcomes = []
    for seed in range(6):
        gen = generator(seed=seed, drafter=drafter)
        for prompt in PROMPTS:
            for pattern in PATTERNS:
                if greedy(monkeypatch, gen, prompt, pattern).reason != "end":
                    continue
                right, written = judged(monkeypatch, gen, prompt, pattern)
                (result,) = gen.sample(prompt, tf.regex(pattern), sampler=GREEDY, max_tokens=30)
                assert result.text == right, (seed, prompt, pattern)
                assert result.reason == "end"
                outcomes.append(right == written)
                ids = list(gen.prompt_ids(prompt))
                table = logprobs(gen.model, [*ids, *result.tokens])[len(ids) - 1 :]
                alone = sum(float(table[place][one]) for place, one in enumerate(result.tokens))
                assert result.logprob == pytest.approx(alone, abs=1e-6)
    assert outcomes.count(True) > 5 and outcomes.count(False) > 5  # the test can fail


@pytest.mark.parametrize("pattern", PATTERNS)
def test_drafts_batches_streams_and_schedulers_write_alike(pattern: str) -> None:
    for prompt in PROMPTS[:2]:
        written_alike(prompt, tf.regex(pattern), 0.0, 24)


@pytest.mark.parametrize("mode", ["chain", "plain", "whole"])
def test_models_that_score_no_trees_and_devices_write_alike(mode: str) -> None:
    gen = generator()
    sampler = MaskedSampler(GREEDY, gen.vocabulary.size, gen.vocabulary.eos)
    automaton, texts = tf.regex(PATTERNS[0]).compile(gen.vocabulary), []
    for used in ("tree", mode):
        backbone = Backbone(gen.model, mode="tree" if used == "whole" else used)
        speculator = Speculator(backbone, matcher=DeviceDraws(backbone.device, whole=used == "whole"))
        outputs = []
        for seed, prompt in enumerate(PROMPTS * 2):
            request = Request(
                gen.prompt_ids(f"{prompt} {seed}"), sampler, automaton, max_tokens=24,
                eos=frozenset(gen.vocabulary.eos), encode=gen.spell, passages=(prompt,),
            )  # fmt: skip
            outputs.append(speculator.output(speculator.add(request)))
        while speculator.active:
            speculator.step()
        assert not any(one.error for one in outputs)
        texts.append([one.tokens for one in outputs])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_parts_are_those_of_a_regular_expression(pattern: str) -> None:
    gen = generator()
    automaton = tf.regex(pattern).compile(gen.vocabulary)
    spelling = standing.Spelling(list(gen.vocabulary.tokens), gen.spell, list(gen.vocabulary.special))
    for prompt in PROMPTS:
        found = [one.decode() for one in standing.parts(automaton, [prompt], spelling)]
        assert sorted(found) == parts(prompt, pattern)


def test_where_much_matches_nothing_is_weighed(monkeypatch) -> None:
    gen = generator()
    words = " ".join(f"{a}{b}" for a in "abcdefgh" for b in "abcdefghij")
    for prompt in (words, words * 100):
        (result,) = gen.sample(prompt[:200], tf.regex(".+"), sampler=GREEDY, max_tokens=20)
        assert result.text == greedy(monkeypatch, gen, prompt[:200], ".+", 20).text


def test_a_long_prompt_takes_little_work() -> None:
    gen = generator()
    automaton = tf.regex("[a-z ]{400,}").compile(gen.vocabulary)
    spelling, steps = standing.Spelling(list(gen.vocabulary.tokens)), 0
    text = "a b " * 5000

    class Counted:
        start = automaton.start

        def __getattr__(self, name: str) -> Any:
            nonlocal steps
            steps += name == "step_bytes"
            return getattr(automaton, name)

    assert list(standing.parts(Counted(), [text], spelling)) == []
    assert steps <= 16 * len(text) + standing.LONGEST


def test_what_is_no_bare_value_and_no_greedy_text_is_as_it_was(monkeypatch) -> None:
    gen = generator()
    prompt = PROMPTS[0]
    asked = [
        (tf.regex(PATTERNS[0]), tf.Local(0.9)),
        (tf.regex(PATTERNS[0]), tf.Local(0.0, values="token")),
        (tf.json_schema({"type": "string", "maxLength": 8}), GREEDY),
    ]
    for grammar, sampler in asked:
        options: Any = {"sampler": sampler, "max_tokens": 24, "seed": 3}
        (weighed,) = gen.sample(prompt, grammar, **options)
        with monkeypatch.context() as patched:
            patched.setattr(live, "weighing", lambda one: None)
            assert gen.sample(prompt, grammar, **options)[0].tokens == weighed.tokens


@pytest.mark.parametrize("drafter", [None, "auto"])
@pytest.mark.parametrize("seed", range(4))
def test_alternatives_are_those_of_the_tokens_that_were_written(seed: int, drafter: Any) -> None:
    gen = generator(seed=seed, drafter=drafter)
    for prompt, pattern in itertools.product(PROMPTS, PATTERNS):
        rows = gen.rows(prompt, tf.regex(pattern), 1, None, 24)
        (row,) = rows
        row.alternatives = 3
        for _ in gen.decoder(GREEDY, 1).run(rows, 1):
            pass
        written, ids = row.output.tokens, list(gen.prompt_ids(prompt))
        table = logprobs(gen.model, [*ids, *written])[len(ids) - 1 :]
        assert len(row.output.likeliest) == len(written)
        for place, found in enumerate(row.output.likeliest):
            best = np.sort(table[place])[::-1][:3]
            assert [score for _, score in found] == pytest.approx(best.tolist(), abs=1e-4)
