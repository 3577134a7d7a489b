"""A prompt's end tells where it has left the thought; what comes before the text is no part of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import torch
from scripted import TEMPLATES, Scripted, tokenizer

import tokenform as tf
from tokenform.decoding.scheduler import Scheduler
from tokenform.errors import BudgetTooSmall, OptionError
from tokenform.frontends.tools import find_marks

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
SAID = {"text": "Hello there.", "schema": '{"answer": 4}'}
ASKED = [{"role": "user", "content": "hi"}]


def turns(said: str) -> list[str]:
    return [f"<think>\nI should greet.\n</think>\n\n{said}", f"<think>\n\n</think>\n\n{said}", said]


def thinks(template: str, thinking: bool | None) -> bool:
    """Whether a thought comes, of a model that would open one itself."""
    told = thinking is True or (thinking is None and template in ("own", "open", "always"))
    return told and template != "none"


@pytest.fixture(scope="module")
def models() -> dict[tuple[str, bool | None], tuple[Any, Scripted]]:
    torch.set_num_threads(1)
    made = {}
    for template in TEMPLATES:
        for special in (True, False, None):
            if template == "none" and special is not None:
                continue  # marks in the vocabulary say that it thinks
            known = tokenizer(template, special=special)
            made[template, special] = known, Scripted(known, turns("Hello there."))
    return made


CASES = [(t, s) for t in TEMPLATES for s in (True, False, None) if t != "none"]


@pytest.mark.parametrize("thinking", [None, False, True])
@pytest.mark.parametrize("kind", ["text", "schema"])
@pytest.mark.parametrize(("template", "special"), CASES)
def test_the_thought_is_found_and_the_constraint_begins_after_it(models, template, special, kind, thinking):
    known, model = models[template, special]
    model.turns = turns(SAID[kind])
    grammar = None if kind == "text" else SCHEMA
    reasoning = "I should greet." if thinks(template, thinking) else None
    writer = tf.Generator(model, known)
    call: dict[str, Any] = {"max_tokens": 120, "thinking": thinking}
    (whole,) = writer.sample(ASKED, grammar, **call)
    assert (whole.text, whole.reasoning) == (SAID[kind], reasoning)
    assert whole.value == (SAID[kind] if kind == "text" else {"answer": 4})

    pieces, thoughts = [], []
    stream = writer.stream(ASKED, grammar, **call, on_reasoning=thoughts.append)
    while True:
        try:
            pieces.append(next(stream))
        except StopIteration as ended:
            assert ended.value.reasoning == reasoning
            break
    assert "".join(pieces) == SAID[kind] and "".join(thoughts) == (reasoning or "")

    with Scheduler(writer) as scheduler:
        told: list[Any] = []
        (one,) = scheduler.submit(ASKED, grammar, **call, listener=told.append).result(60)
    assert (one.text, one.reasoning, one.tokens) == (whole.text, reasoning, whole.tokens)
    assert "".join(piece.text for piece in told if piece.thought) == (reasoning or "")
    assert "".join(piece.text for piece in told if not piece.thought) == SAID[kind]


def test_a_switch_of_the_template_switches_it(models):
    for template in ("own", "open", "always"):
        known, model = models[template, True]
        model.turns = turns("Hello there.")
        off = {"chat_options": {"enable_thinking": False}}
        result = tf.generate(ASKED, model=model, tokenizer=known, max_tokens=100, **off)
        assert (result.text, result.reasoning) == ("Hello there.", None), template
        writer = tf.Generator(model, known, **off)
        assert writer.sample(ASKED, max_tokens=100)[0].reasoning is None
    known, model = models["asked", True]
    model.turns = turns("Hello there.")
    result = tf.generate(ASKED, model=model, tokenizer=known, max_tokens=100, chat_options={"thinking": True})
    assert (result.text, result.reasoning) == ("Hello there.", "I should greet.")


def test_a_rendered_prompt_is_a_prompt_and_a_raw_one_is_not(models):
    known, model = models["own", True]
    model.turns = turns("Hello there.")
    text = known.apply_chat_template(ASKED, add_generation_prompt=True, tokenize=False)
    ids = known.encode(text, add_special_tokens=False)
    for prompt in (ids, [*ids, *known.encode("<think>\n", add_special_tokens=False)]):
        result = tf.Generator(model, known).sample(prompt, max_tokens=100)[0]
        assert (result.text, result.reasoning) == ("Hello there.", "I should greet.")
    spoken = known.encode("a user speaks of <think> here", add_special_tokens=False)
    result = tf.Generator(model, known).sample(spoken, tf.choice(["a", "b"]), max_tokens=100)[0]
    assert result.reasoning is None


def test_the_thought_keeps_to_its_budget_and_leaves_room(models):
    long = "<think>\n" + "I should think. " * 100 + "\n</think>\n\n"
    for template, special in (("open", True), ("own", None)):
        known, model = models[template, special]
        model.turns = [long + '{"answer": 4}', '{"answer": 4}']
        writer = tf.Generator(model, known)
        for call in ({"thinking": 20}, {"max_tokens": 60}):
            (result,) = writer.sample(ASKED, SCHEMA, **call)
            assert result.thought.cut and len(result.thought.tokens) <= (20 if "thinking" in call else 45)
            assert set(result.value) == {"answer"} and "think>" not in result.reasoning
            assert len(result.tokens) + len(result.thought.tokens) <= call.get("max_tokens", 512)
        with pytest.raises(OptionError, match="no thought fits into 1"):
            writer.sample(ASKED, SCHEMA, thinking=1)
    with pytest.raises(BudgetTooSmall, match="no thought and text fit into 12"):
        tf.Generator(*models["open", None][::-1]).sample(ASKED, SCHEMA, max_tokens=12)
    # left to the model, there is no room for one: the document alone
    known, model = models["own", None]
    model.turns = turns('{"answer": 4}')
    assert tf.Generator(model, known).sample(ASKED, SCHEMA, max_tokens=15)[0].reasoning is None


def test_async_calls_have_their_thoughts(models):
    known, model = models["open", True]
    model.turns = turns('{"answer": 4}')

    async def run() -> None:
        async with tf.AsyncGenerator(model, known) as writer:
            ((one,), (two,)) = await asyncio.gather(*(writer.sample(ASKED, SCHEMA) for _ in range(2)))
            assert one.value == {"answer": 4} and one.reasoning == two.reasoning == "I should greet."
            thoughts: list[str] = []
            stream = writer.stream(ASKED, SCHEMA, partial=True, on_reasoning=thoughts.append)
            values = [value async for value in stream]
            assert values[-1] == {"answer": 4} and "".join(thoughts) == "I should greet."
            (off,) = await writer.sample(ASKED, SCHEMA, thinking=False)
            assert off.reasoning is None and off.value == {"answer": 4}

    asyncio.run(run())


def test_seeds_and_many_texts(models):
    for template, special in (("own", None), ("own", True), ("open", False)):
        known, model = models[template, special]
        model.turns = []  # all at random
        hot = tf.Local(temperature=1.0)
        writer = tf.Generator(model, known, sampler=hot)
        alone = [writer.sample(ASKED, SCHEMA, n=3, seed=seed, max_tokens=60) for seed in (1, 2)]
        both = writer.sample([ASKED, ASKED], SCHEMA, n=3, seed=[1, 2], max_tokens=60)
        for one, other in zip(alone, both, strict=True):
            assert [(a.text, a.thought) for a in one] == [(b.text, b.thought) for b in other]
            assert all(set(a.value) == {"answer"} for a in one)


def test_validators_see_the_text_after_its_own_thought(models):
    from typing import Annotated

    from pydantic import AfterValidator, BaseModel

    def even(number: int) -> int:
        if number % 2:
            raise ValueError("odd")
        return number

    class Answer(BaseModel):
        answer: Annotated[int, AfterValidator(even)]

    known, model = models["open", True]
    model.turns = []
    writer = tf.Generator(model, known, sampler=tf.Local(temperature=1.0))
    drawn = writer.sample(ASKED, tf.from_type(Answer), n=4, seed=3, max_tokens=60, thinking=12)
    assert all(one.value.answer % 2 == 0 and one.reasoning is not None for one in drawn)
    assert len({one.reasoning for one in drawn}) > 1


HARMONY = (
    "{%- for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}<|channel|>final{% endif %}"
    "<|message|>{{ m.content }}<|end|>{% endfor %}{# analysis #}"
    "{%- if add_generation_prompt %}<|start|>assistant{% endif %}"
)
CHANNELS = ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>")
COHERE = (
    "{%- for m in messages %}<|{{ m.role }}|><|START_RESPONSE|>{{ m.content }}<|END_RESPONSE|>{% endfor %}"
    "{%- if add_generation_prompt %}<|assistant|>{% if reasoning is false %}<|START_THINKING|>"
    "<|END_THINKING|>{% endif %}{% endif %}"
)
MAGISTRAL = (
    "{%- for m in messages %}[{{ m.role }}]{% if m.reasoning %}[THINK]{{ m.reasoning }}[/THINK]{% endif %}"
    "{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)
SEED = MAGISTRAL.replace("[THINK]", "<seed:think>").replace("[/THINK]", "</seed:think>")
REASONING = MAGISTRAL.replace("[THINK]", "<reasoning>\n").replace("[/THINK]", "\n</reasoning>\n")
FAMILIES = {
    "harmony": (HARMONY, CHANNELS, "<|start|>assistant", "<|channel|>analysis<|message|>Hm.<|end|>"
                "<|start|>assistant<|channel|>final<|message|>", "<|channel|>final<|message|>"),
    "cohere": (COHERE, ("<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
               "<|assistant|>", "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>",
               "<|START_RESPONSE|>"),
    "magistral": (MAGISTRAL, ("[THINK]", "[/THINK]"), "[assistant]", "[THINK]Hm.[/THINK]", ""),
    "seed": (SEED, ("<seed:think>", "</seed:think>"), "[assistant]", "<seed:think>Hm.</seed:think>", ""),
    "reasoning": (REASONING, (), "[assistant]", "<reasoning>\nHm.\n</reasoning>\n", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_families_have_marks_of_their_own(name):
    template, marks, begins, thought, bare = FAMILIES[name]
    known = tokenizer(template, special=True, marks=marks)
    found = find_marks(known)
    assert found is not None and thought.startswith(found.opener.rstrip())
    for said, grammar in (("Hello there.", None), ('{"answer": 4}', SCHEMA)):
        model = Scripted(known, [thought + said, bare + said], begins)
        writer = tf.Generator(model, known)
        for thinking in (None, True):
            (result,) = writer.sample(ASKED, grammar, max_tokens=150, thinking=thinking)
            assert (result.text, result.reasoning) == (said, "Hm."), thinking
        model.turns = [bare + said]
        (result,) = writer.sample(ASKED, grammar, max_tokens=150)
        assert (result.text, result.reasoning) == (said, None)
        (result,) = writer.sample(ASKED, grammar, max_tokens=150, thinking=False)
        if (
            name != "cohere" and name != "reasoning"
        ):  # those write an empty block first, which no turn here does
            assert (result.text, result.reasoning) == (said, None)


def test_a_model_without_marks_has_no_thoughts(models):
    known, model = models["none", None]
    model.turns = ["Hello there."]
    assert find_marks(known) is None
    writer = tf.Generator(model, known)
    assert writer.sample(ASKED, max_tokens=50)[0].reasoning is None
    (asked,) = writer.sample(ASKED, tf.choice(["a", "b"]), max_tokens=80, thinking=True)
    assert asked.reasoning is not None  # between the marks of its tool format, for whoever asks


@pytest.mark.parametrize("template", ["own", "open"])
def test_samplers_of_whole_texts_tell_what_was_read(models, template):
    """With the empty thought that stands for none, and without the thought that was written."""
    known, model = models[template, None]
    model.turns = turns("ab")
    (result,) = tf.Generator(model, known).sample(ASKED, tf.choice(["ab", "x"]), sampler=tf.Beam(2))
    (again,) = tf.Generator(model, known).sample(ASKED, tf.choice(["ab", "x"]), thinking=template == "open")
    assert result.prompt == again.prompt and ("</think>" in str(result.prompt)) == (template == "own")
