"""A value that stands in the prompt: the judge weighs the greedy text against each span of the prompt, by
plain passes of its own."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tokenform as tf
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.speculative import live, prompt_spans, weighing
from tokenform.decoding.speculative.request import Request

from .judge import backbones_write_alike, generator, logprobs, text_logprob, written_alike

GREEDY = tf.Local(0.0)
NAMES = [f"{one} {other}" for one in ("no", "the", "new", "The") for other in ("king", "York", "these", "!")]
"""More than one pass scores."""
PROMPTS = [
    "the new york no! newark, none of these",
    "no: 12, 7.5 and 100 (new york)",
    "Zürich, The Hague",
    "the plant kingdom; the plant, kingdom",
    "no.newark at 3.14.15, new.york; 7 or 7.5",
    "the +44 20 7946 0958 no 12 or 7.5 030 1234 new",
    "no: 1,250 the new york, 12,5 no -18.802 these; $7,125,250.75",
]
READ = {PROMPTS[-1]: {"1,250": "1250", "12,5": "12.5", "-18.802": "-18802", "7,125,250.75": "7125250.75"}}
"""Numbers as they stand in a prompt, and without their marks."""
FIELDS = {"a": r"[a-z]+", "b": r"\d+(\.\d+)?", "c": r"[a-zA-Z]{2,} [a-z]+"}
DOCUMENT = {
    "type": "object",
    "properties": {name: {"type": "string", "pattern": f"^{one}$"} for name, one in FIELDS.items()},
    "required": list(FIELDS),
    "additionalProperties": False,
}
PATTERNS = [r"[a-z]+", r"-?\d+(\.\d+)?", r"[a-z]{2,9} [a-z]+", r"\w+", r"[a-z0-9.]+", r"\+?[0-9 ]+[0-9]"]


def spans(prompt: str, pattern: str) -> list[str]:
    begins = [at for at in range(len(prompt)) if not (at and prompt[at - 1].isalnum())]
    ends = [at for at in range(1, len(prompt) + 1) if at == len(prompt) or not prompt[at].isalnum()]
    found = {(begin, end) for begin in begins for end in ends if re.fullmatch(pattern, prompt[begin:end])}

    def piece(begin: int, end: int) -> bool:
        """Of a longer one that goes on without a space."""
        more = [(b, e) for b, e in found if b <= begin and end <= e]
        before = any(b < begin for b, _ in more) and not apart(begin - 1)
        longer = any(b == begin and e > end and prompt[e - 1].isalnum() for b, e in more)
        return before or (longer and not apart(end))

    def apart(place: int) -> bool:
        return prompt[place].isspace() and not re.fullmatch(r"\d\s\d", prompt[place - 1 : place + 2])

    def in_number(begin: int, end: int) -> bool:
        return any(re.fullmatch(r"\d[.,]\d", prompt[max(at, 0) : at + 3]) for at in (begin - 2, end - 1))

    whole = {prompt[b:e] for b, e in found if not piece(b, e) and not in_number(b, e)}
    read = {
        one
        for as_written, one in READ.get(prompt, {}).items()
        if as_written not in whole and re.fullmatch(pattern, one)
    }
    return sorted(whole | read)


def greedy(monkeypatch, gen: tf.Generator, prompt: str, pattern: str, budget: int = 30) -> tf.Result:
    """What is written where nothing is weighed."""
    with monkeypatch.context() as patched:
        patched.setattr(live, "prompt_spans", lambda one: None)
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
    some = spans(prompt, pattern)
    cut = {
        re.split(r"[.,]", as_written)[0] for as_written, one in READ.get(prompt, {}).items() if one in some
    }
    free = free and written.text not in cut.difference(some)
    scores = {text: text_logprob(gen.model, ids, gen.spell(text.encode()), eos) for text in some}
    own = text_logprob(gen.model, ids, written.tokens, eos)
    if free or not scores or own >= max(scores.values()):
        return written.text, written.text
    return max(scores, key=scores.__getitem__), written.text


@pytest.mark.parametrize("drafter", [None, "auto"])
def test_the_likeliest_of_the_greedy_text_and_the_prompts_spans_is_written(monkeypatch, drafter: Any) -> None:
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
@pytest.mark.parametrize("bare", [True, False])
def test_models_that_score_no_trees_and_devices_write_alike(mode: str, bare: bool) -> None:
    gen, grammar = generator(), tf.regex(PATTERNS[0]) if bare else tf.json_schema(DOCUMENT)
    sampler, eos = (
        MaskedSampler(GREEDY, gen.vocabulary.size, gen.vocabulary.eos),
        frozenset(gen.vocabulary.eos),
    )
    requests = [
        Request(
            gen.prompt_ids(f"{prompt} {seed}"), sampler, grammar.compile(gen.vocabulary), eos=eos,
            max_tokens=24 if bare else 100, encode=gen.spell, passages=(prompt,), bare=bare,
        )
        for seed, prompt in enumerate(PROMPTS * 2)
    ]  # fmt: skip
    backbones_write_alike(gen, mode, requests)


def spans_of(gen: tf.Generator, automaton: Any, *passages: str) -> prompt_spans.PromptSpans:
    request = Request([0], automaton=automaton, passages=passages, bare=True)
    spelling = prompt_spans.Spelling(list(gen.vocabulary.tokens), gen.spell, list(gen.vocabulary.special))
    return prompt_spans.PromptSpans(SimpleNamespace(request=request), spelling)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_spans_are_those_of_a_regular_expression(pattern: str) -> None:
    gen = generator()
    automaton = tf.regex(pattern).compile(gen.vocabulary)
    for prompt in PROMPTS:
        found = spans_of(gen, automaton, prompt).at(automaton.start, False)
        assert sorted(one.decode() for one in found) == spans(prompt, pattern)


@pytest.mark.parametrize(
    ("prompt", "schema", "right"),
    [
        ("The fair had 12,500 visitors.", "integer", ["12500"]),
        ("12.95 euros, or 3", "integer", ["3"]),
        ("-1,250 or -7,25", "number", ["-1250", "-7.25"]),
        ("1.299,00 and 1.250.000 and 18.802", "number", ["1250000", "1299.00", "18.802"]),
        ("3 450 or 12\u202f000", "integer", ["12000", "3", "3450", "450"]),
        ("1,2,3 at 10.0.0.1", "integer", []),
        ("1,25,300 (1,250,75)", "number", []),
        ("at 4,8 and 15", "number", ["15", "4.8"]),
    ],
)
def test_a_piece_of_a_number_is_no_span_and_its_marks_are_none_of_its_own(
    prompt: str, schema: str, right: list[str]
) -> None:
    gen = generator()
    automaton = tf.json_schema({"type": schema}).compile(gen.vocabulary)
    found = spans_of(gen, automaton, prompt).at(automaton.start, False)
    assert sorted(one.decode() for one in found) == right


def test_where_much_matches_nothing_is_weighed(monkeypatch) -> None:
    gen = generator()
    words = " ".join(f"{a}{b}" for a in "abcdefgh" for b in "abcdefghij")
    automaton = tf.regex(".+").compile(gen.vocabulary)
    assert spans_of(gen, automaton, words).at(automaton.start, False) == []
    (result,) = gen.sample(words[:200], tf.regex(".+"), sampler=GREEDY, max_tokens=20)
    assert result.text == greedy(monkeypatch, gen, words[:200], ".+", 20).text


def test_a_text_takes_bounded_work(monkeypatch) -> None:
    """Of long prompts and many places."""
    monkeypatch.setattr(prompt_spans, "STEPS", 5000)
    gen, steps = generator(), 0
    automaton = tf.regex("[a-z ]{400,}").compile(gen.vocabulary)

    class Counted:
        start = automaton.start

        def __getattr__(self, name: str) -> Any:
            nonlocal steps
            steps += name == "step_bytes"
            return getattr(automaton, name)

    looked, state = spans_of(gen, Counted(), "a b " * 5000), automaton.start
    for _ in range(50):
        assert looked.at(state, False) == []
        state = automaton.step_bytes(state, b"a")
    assert steps <= 5000 + 2 * prompt_spans.LONGEST


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
            patched.setattr(live, "prompt_spans", lambda one: None)
            assert gen.sample(prompt, grammar, **options)[0].tokens == weighed.tokens


@pytest.mark.parametrize("drafter", [None, "auto"])
@pytest.mark.parametrize("seed", range(4))
def test_alternatives_are_those_of_the_tokens_that_were_written(seed: int, drafter: Any) -> None:
    gen = generator(seed=seed, drafter=drafter)
    grammars = [*map(tf.regex, PATTERNS), tf.json_schema(DOCUMENT), tf.json_schema({"enum": NAMES})]
    for prompt, grammar in itertools.product(PROMPTS, grammars):
        rows = gen.rows(prompt, grammar, 1, None, 100)
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


def string(gen: tf.Generator, ids: list[int], automaton: Any, state: Any) -> list[int]:
    """Greedy decoding up to the token that closes a string, by plain passes; where a word may end in one way,
    its end has all that does not lengthen it."""
    tokens: list[int] = []
    while not tokens or b'"' not in gen.vocabulary.token(tokens[-1]):
        row = logprobs(gen.model, [*ids, *tokens])[-1]
        allowed = automaton.allowed_tokens(state)
        firsts = [gen.vocabulary.token(one)[:1].decode("latin-1") for one in allowed.tolist()]
        longer = np.array([one.isalnum() or one in "_." or one >= "\x80" for one in firsts])
        in_word = bool(tokens) and gen.vocabulary.token(tokens[-1])[-1:].isalnum()
        ways = {one for one, more in zip(firsts, longer, strict=True) if not more}
        if in_word and longer.any() and len(ways) == 1:
            more = float(np.exp(row[allowed[longer]]).sum())
            allowed = allowed[~longer if 1 - more >= more else longer]
        tokens.append(int(allowed[row[allowed].argmax()]))
        state = automaton.advance(state, tokens[-1])
        if len(tokens) > 60:
            return []
    return tokens


def judged_string(
    gen: tf.Generator, ids: list[int], automaton: Any, state: Any, some: list[str]
) -> str | None:
    """The string that wins at a place, None where it is too long to judge."""
    data, net = gen.vocabulary.token, gen.model

    def score(tokens: list[int], rest: bytes) -> float:
        end = state
        for token in tokens:
            end = automaton.advance(end, token)
        ends = [one for one in automaton.allowed_tokens(end).tolist() if data(one).startswith(rest)]
        return text_logprob(net, ids, tokens, ends)

    *written, last = string(gen, ids, automaton, state) or [0]
    if not written or data(last)[:1] != b'"':
        return None
    text, own = b"".join(map(data, written)).decode(), score(written, b'"')
    table = logprobs(net, [*ids, *written])[len(ids) - 1 :]
    *best, after = table.argmax(-1).tolist()
    end = state
    for token in written:
        end = automaton.advance(end, token)
    free = best == written and (b'"' in data(after) or not automaton.allows(end, after))
    if own >= np.log(0.5) or (free and len(re.findall(r"\S*[^\W\d_]\S*", text)) >= weighing.PROSE):
        return text
    scores = {text: own}
    for one in some:
        *before, closing = gen.spell(f'{one}"'.encode())
        scores[one] = score(list(before), data(closing))
    return max(scores, key=scores.__getitem__)


@pytest.mark.parametrize("drafter", [None, "auto"])
def test_strings_of_a_document_are_weighed_one_by_one(drafter: Any) -> None:
    outcomes: Counter[str] = Counter()
    for seed, prompt in itertools.product(range(4), PROMPTS):
        gen = generator(seed=seed, drafter=drafter)
        grammar = tf.json_schema(DOCUMENT)
        (result,) = gen.sample(prompt, grammar, sampler=GREEDY, max_tokens=120)
        automaton, ids = grammar.compile(gen.vocabulary), list(gen.prompt_ids(prompt))
        state, tokens, text = automaton.start, list(result.tokens), b""
        for place, token in enumerate(tokens):
            state, text = automaton.advance(state, token), text + gen.vocabulary.token(token)
            if (opened := re.search(rb'"([abc])":\s*"$', text)) is None:
                continue
            name = opened[1].decode()
            some = spans(prompt, FIELDS[name])
            right = judged_string(gen, [*ids, *tokens[: place + 1]], automaton, state, some)
            if result.reason == "end" and right is not None:
                assert result.value[name] == right, (seed, prompt, name)
                outcomes["a span" if right in some else "another"] += 1
    assert min(outcomes["a span"], outcomes["another"]) > 3, outcomes  # the test can fail


BLANK = {"a": "^[a-z]*$", "b": "^[0-9. ]*$", "c": "^[a-zA-Z ]*$"}
EMPTY = {
    **DOCUMENT,
    "properties": {name: {"type": "string", "pattern": one} for name, one in BLANK.items()},
}
"""Strings that may be empty: at their first place a word may end."""


@pytest.mark.parametrize("schema", [DOCUMENT, EMPTY])
def test_documents_are_written_alike(schema: dict[str, Any]) -> None:
    for prompt in PROMPTS[:2]:
        written_alike(prompt, tf.json_schema(schema), 0.0, 100)


def test_what_drafts_have_decided_already_is_weighed_too() -> None:
    for seed, prompt in itertools.product(range(6), [*PROMPTS, "zz top qx, 31.75 and 4242"]):
        plain, drafted = (generator(seed=seed, drafter=one) for one in (None, "auto"))
        options: Any = {"sampler": GREEDY, "max_tokens": 120}
        text = plain.sample(prompt, tf.json_schema(EMPTY), **options)[0].text
        for _ in range(2):  # the second time the text itself is the draft
            assert drafted.sample(prompt, tf.json_schema(EMPTY), **options)[0].text == text


@pytest.mark.parametrize("budget", range(24, 60, 4))
def test_a_budget_that_changes_a_document_is_said(budget: int) -> None:
    for seed, prompt in itertools.product(range(3), PROMPTS[:2]):
        gen = generator(seed=seed)
        long, short = (
            gen.sample(
                prompt, tf.json_schema(DOCUMENT), sampler=GREEDY, max_tokens=most, on_invalid="return"
            )[0]
            for most in (400, max(budget, 30))
        )
        if short.reason == "end":
            assert short.tokens == long.tokens
        else:
            assert short.text[: short.cut_at] == long.text[: short.cut_at]
