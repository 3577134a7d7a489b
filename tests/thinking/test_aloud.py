"""A model without a block of thoughts thinks aloud; the constraint binds what comes after the bridge."""

from __future__ import annotations

import asyncio
import functools
import math
from typing import Any

import pytest
import torch
from scripted import Scripted, tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

import tokenform as tf
from tokenform.decoding.reason import Readiness
from tokenform.decoding.scheduler import Scheduler
from tokenform.decoding.thinking import reasoned
from tokenform.errors import BudgetTooSmall, OptionError, TokenformError

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
THOUGHT = "I should think. Oslo, Hello there."
BRIDGE = tf.Reason().bridge
ANSWER = '{"answer": 4}'


@pytest.fixture(scope="module")
def known() -> Any:
    torch.set_num_threads(1)
    return tokenizer("none", special=None)


@pytest.fixture
def model(known) -> Scripted:
    """It thinks and ends its turn; after the bridge it answers."""
    return Scripted(known, [THOUGHT, f"{THOUGHT}{BRIDGE}{ANSWER}"], everywhere=True)


@pytest.fixture(scope="module")
def llama(known) -> Any:
    """Of random weights, with a cache."""
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=len(known), eos_token_id=known.eos_token_id, **size)
    return LlamaForCausalLM(config).double().eval()


def test_the_turn_ends_the_thought_and_the_answer_follows(known, model):
    writer = tf.Generator(model, known)
    (whole,) = writer.sample("hi", SCHEMA, reason=True)
    assert (whole.text, whole.value, whole.reasoning) == (ANSWER, {"answer": 4}, THOUGHT)
    assert not whole.thought.cut and "step by step" in str(whole.prompt) and BRIDGE not in str(whole.prompt)

    pieces, thoughts = [], []
    stream = writer.stream("hi", SCHEMA, reason=True, on_reasoning=thoughts.append)
    while True:
        try:
            pieces.append(next(stream))
        except StopIteration as ended:
            assert ended.value.reasoning == THOUGHT
            break
    assert ("".join(pieces), "".join(thoughts)) == (ANSWER, THOUGHT)

    async def run() -> None:
        async with tf.AsyncGenerator(model, known) as other:
            told: list[str] = []
            (one,) = await other.sample("hi", SCHEMA, reason=True)
            stream = other.stream("hi", SCHEMA, reason=True, on_reasoning=told.append)
            assert "".join([piece async for piece in stream]) == one.text == ANSWER
            assert "".join(told) == one.reasoning == THOUGHT

    asyncio.run(run())


def test_chats_are_told_and_bare_texts_are_not(known, model):
    writer = tf.Generator(model, known)
    chat = [{"role": "user", "content": "hi"}]
    short: Any = {"max_tokens": 80}
    assert "step by step" in str(writer.sample(chat, SCHEMA, reason=True, **short)[0].prompt)
    assert "step by step" not in str(writer.sample("hi", SCHEMA, reason=8, raw=True, **short)[0].prompt)
    own = tf.Reason(8, words="Hm.", bridge=" so: ")
    assert "Hm.\n\nhi" in str(writer.sample("hi", SCHEMA, reason=own, **short)[0].prompt)
    draft = writer.sample("hi", SCHEMA, reason=tf.Reason(draft=True), **short)[0]
    assert "with the fields answer" in str(draft.prompt) and draft.reasoning == THOUGHT


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_nothing_is_run_twice(known, llama, temperature, monkeypatch):
    ran: list[int] = []
    forward = llama.forward

    @functools.wraps(forward)
    def counted(*given: Any, **named: Any) -> Any:
        ran.append(named["input_ids"].numel())
        return forward(*given, **named)

    monkeypatch.setattr(llama, "forward", counted)
    sampler = tf.Local(temperature=temperature)
    writer = tf.Generator(llama, known, sampler=sampler, drafter=None, prompt_cache=0)
    writer.sample("hi", SCHEMA, seed=0)  # whether trees serve the model is tried out once
    ran.clear()
    (result,) = writer.sample("hi", SCHEMA, reason=12, seed=1)
    bridge = known.encode(BRIDGE, add_special_tokens=False)
    written = len(result.thought.tokens) + len(bridge) + len(result.tokens)
    assert sum(ran) <= len(result.prompt.ids) + written + 1
    # a place that is measured makes a pass wider, and is no other
    ran.clear()
    measured = tf.Reason(12, mass=1.0)
    (asked,) = writer.sample("hi", SCHEMA, reason=measured, seed=1)
    assert (asked.text, asked.thought) == (result.text, result.thought)
    assert len(ran) <= asked.stats.forwards


def test_budgets(known, model):
    model.turns = ["I should think. " * 200]
    writer = tf.Generator(model, known)
    (cut,) = writer.sample("hi", SCHEMA, reason=20, max_tokens=90)
    assert cut.thought.cut and len(cut.thought.tokens) == 20 and set(cut.value) == {"answer"}
    bridge = len(known.encode(BRIDGE, add_special_tokens=False))
    for most in (50, 60):
        (shared,) = writer.sample("hi", SCHEMA, reason=True, max_tokens=most)
        assert len(shared.thought.tokens) + bridge + len(shared.tokens) <= most
    with pytest.raises(BudgetTooSmall, match="no thought and text fit into 15"):
        writer.sample("hi", SCHEMA, reason=True, max_tokens=15)


def test_the_thought_ends_where_the_text_is_feasible(known, model):
    ready = "I should think."
    model.turns = [THOUGHT, f"{ready}{BRIDGE}{ANSWER}"]
    drafted, plain = tf.Generator(model, known), tf.Generator(model, known, drafter=None)
    for writer in (drafted, plain):
        (result,) = writer.sample("hi", SCHEMA, reason=tf.Reason(mass=0.5))
        assert (result.text, result.reasoning, result.thought.cut) == (ANSWER, ready, False)
        with Scheduler(writer) as scheduler:
            told: list[Any] = []
            call: Any = {"thinking": reasoned(None, tf.Reason(mass=0.5)), "listener": told.append}
            (one,) = scheduler.submit("hi", SCHEMA, **call).result(60)
        assert (one.text, one.reasoning) == (ANSWER, ready)
        assert "".join(piece.text for piece in told if piece.thought) == ready
    model.turns = [THOUGHT, f"{THOUGHT}{BRIDGE}{ANSWER}"]
    assert plain.sample("hi", SCHEMA, reason=tf.Reason(mass=0.5))[0].reasoning == THOUGHT


def test_the_feasible_mass_is_that_of_the_model(known, llama):
    vocabulary = tf.Generator(llama, known).vocabulary
    for grammar, opening in (
        (tf.choice(["red", "real", "rest"]), b"re"),
        (tf.json_schema(SCHEMA), b'{"answer":'),
        (tf.regex("(ab)?"), b""),
    ):
        automaton = grammar.compile(vocabulary)
        asked = Readiness([5, 6], automaton, lambda text: vocabulary.greedy(text) or [])
        assert b"".join(vocabulary.token(one) for one in asked.chain[2:]) == opening
        with torch.no_grad():
            logits = llama(torch.tensor([[known.encode("hi")[0], *asked.chain]])).logits[0]
        state = automaton.step_bytes(automaton.start, opening)
        allowed = [token for token in range(len(known)) if automaton.allows(state, token)]
        expected = logits[-1].softmax(-1)[allowed].sum()
        assert asked.log_mass(logits) == pytest.approx(math.log(expected), abs=1e-4)


def test_the_answer_has_the_constrained_law_after_its_thought(known, llama):
    """Its log-probability is that of the model for prompt, thought, bridge and text."""
    writer = tf.Generator(llama, known, sampler=tf.Local(temperature=1.0))
    choices = tf.choice(["true", "Oslo"])
    for result in writer.sample("hi", choices, n=3, seed=4, reason=10):
        ids = [*result.prompt.ids, *result.thought.tokens, *known.encode(BRIDGE, add_special_tokens=False)]
        free = tf.logprob(llama, [result.tokens], prompt=ids, tokenizer=writer.vocabulary, end=False)
        assert result.logprob == pytest.approx(float(free.free_total[0]), abs=1e-6)


def test_seeds_keep_their_texts(known, llama):
    hot = tf.Local(temperature=1.0)
    for reason in (8, tf.Reason(16, mass=1e-4)):
        writer = tf.Generator(llama, known, sampler=hot)
        alone = [writer.sample("hi", SCHEMA, n=3, seed=seed, reason=reason) for seed in (1, 2)]
        both = writer.sample(["hi", "hi"], SCHEMA, n=3, seed=[1, 2], reason=reason)
        for one, other in zip(alone, both, strict=True):
            assert [(a.text, a.thought) for a in one] == [(b.text, b.thought) for b in other]


def test_samplers_of_whole_texts_draw_after_one_thought(known, model):
    writer = tf.Generator(model, known)
    texts = writer.sample("hi", tf.choice(["true", "Oslo"]), n=2, sampler=tf.CARS(), seed=0, reason=True)
    assert {one.reasoning for one in texts} == {THOUGHT}


def test_a_model_with_thoughts_of_its_own_has_those():
    thinks = tokenizer("own", special=True)
    model = Scripted(thinks, [f"<think>\nHm.\n</think>\n\n{ANSWER}"])
    writer = tf.Generator(model, thinks)
    (result,) = writer.sample("hi", SCHEMA, reason=True)
    assert (result.text, result.reasoning) == (ANSWER, "Hm.") and "step by step" not in str(result.prompt)


def test_what_is_not_possible_is_refused(known, model):
    writer = tf.Generator(model, known)
    for wrong in (0, -3, "long"):
        with pytest.raises(OptionError):
            writer.sample("hi", SCHEMA, reason=wrong)
    with pytest.raises(OptionError, match="give one of them"):
        writer.sample("hi", SCHEMA, reason=True, thinking=True)
    with pytest.raises(OptionError, match="mass"):
        tf.Reason(mass=2.0)
    assert writer.sample("hi", SCHEMA, reason=False)[0].reasoning is None
    assert tf.Generator().sample("The parcel 4821 is paid.", SCHEMA, reason=10)[0].thought is not None


def test_what_a_listener_raises_is_the_error_of_its_stream(known, model):
    def refuses(_: str) -> None:
        raise ValueError("not now")

    writer = tf.Generator(model, known)
    with pytest.raises(TokenformError, match="not now"):
        list(writer.stream("hi", SCHEMA, reason=True, on_reasoning=refuses))
    assert writer.generate("hi", SCHEMA, reason=True).reasoning  # and of no other
