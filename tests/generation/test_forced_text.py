"""Text that the constraint forces is written in the tokenizer's own tokens, whatever the model would prefer.

Judge: the tokenizer itself.  A random model cuts text in any way, so what agrees here does not by chance.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import tokenform as tf
from tokenform.decoding.speculative.canonical import forced_tokens, is_joined
from tokenform.decoding.speculative.drafters.spelling import Spelling
from tokenform.integrations.demonstration import PROMPT, demonstrate
from tokenform.integrations.demonstration import SCHEMA as ORDER

NAMES = ["customer", "sentiment", "number_of_guests"]
SCHEMA = {
    "properties": {name: {"type": "integer", "maximum": 99, "minimum": 0} for name in NAMES},
    "required": NAMES,
    "additionalProperties": False,
}
COMPACT = tf.json_schema(SCHEMA, whitespace="compact")
STRINGS = tf.json_schema(
    {
        "properties": {
            "a": {"type": "string", "maxLength": 3},
            "b": {"enum": ["a", "b"]},
            "c": {"type": "integer"},
        },
        "required": ["a", "b", "c"],
        "additionalProperties": False,
    }
)


SPACED = '"a": "b"'


def made(seed: int, more: str = "", **options: Any) -> tf.Generator:
    """A random model over a tokenizer that knows words of the names, many pieces of them, and `more`."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator([*NAMES, "custom sent time guest number", '{"a":1,"b":2}', more] * 4, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="</s>")
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, initializer_range=0.3, eos_token_id=0,
    )  # fmt: skip
    return tf.Generator(LlamaForCausalLM(config).double().eval(), tokenizer, **options)


def cut_as_the_tokenizer_does(generator: tf.Generator, grammar: tf.Grammar, tokens: list[int]) -> bool:
    """Whether each forced text of a text has the tokenizer's tokens, but for its last one."""
    automaton, spelled = grammar.compile(generator.vocabulary), generator.vocabulary.tokens
    state, left = automaton.start, []
    for token in tokens:
        if not left:
            forced = automaton.forced_bytes(state)
            whole = generator.tokenizer.encode(forced.decode(), add_special_tokens=False)
            left = whole if len(whole) > 1 else []
        if len(left) > 1 and token != left[0]:
            return False
        left = left[1:] if left and token == left[0] else []
        state = automaton.advance(state, token)
        assert spelled[token]
    return True


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_names_have_the_tokenizers_tokens(temperature: float) -> None:
    cut = {}
    for forced in ("canonical", "any"):
        generator = made(3, drafter=None, sampler=tf.Local(temperature, forced=forced))  # type: ignore[arg-type]
        texts = [generator.sample("go", COMPACT, seed=seed)[0] for seed in range(4)]
        cut[forced] = [cut_as_the_tokenizer_does(generator, COMPACT, one.tokens) for one in texts]
    assert all(cut["canonical"])
    assert not all(cut["any"])  # the model alone would not


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafts_batches_and_devices_change_nothing(temperature: float) -> None:
    words = 'start: ("alphabetical " | "customer " | "sentiment") NUMBER\nNUMBER: /[0-9]{2}/'
    grammars = [COMPACT, tf.json_schema(SCHEMA), tf.lark(words), STRINGS]
    local = tf.Local(temperature)
    plain = made(5, SPACED, drafter=None, sampler=local)
    alone = [plain.sample("go", grammar, seed=7)[0].tokens for grammar in grammars]
    drafted = made(5, SPACED, sampler=local)
    assert [drafted.sample("go", grammar, seed=7)[0].tokens for grammar in grammars] == alone
    together = drafted.sample(["go"] * 4, grammars, seed=7)
    assert [one[0].tokens for one in together] == alone


@pytest.mark.parametrize("grammar", [COMPACT, STRINGS])
def test_the_device_draws_the_same(monkeypatch: pytest.MonkeyPatch, grammar: tf.Grammar) -> None:
    """Whole rows, as on a GPU."""
    from tokenform.decoding.speculative.matching import DeviceDraws

    host = [
        made(6, SPACED).sample("go", grammar, seed=seed, sampler=tf.Local(1.0))[0].tokens for seed in range(3)
    ]
    real = DeviceDraws.__init__

    def whole(self: Any, device: Any, table: Any = None, places: Any = None, whole: Any = None) -> None:
        real(self, device, table, places, True)

    monkeypatch.setattr(DeviceDraws, "__init__", whole)
    device = [
        made(6, SPACED).sample("go", grammar, seed=seed, sampler=tf.Local(1.0))[0].tokens for seed in range(3)
    ]
    assert device == host


@pytest.mark.parametrize("grammar", [COMPACT, STRINGS])
def test_a_budget_is_kept(grammar: tf.Grammar) -> None:
    generator = made(8, SPACED, sampler=tf.Local(0.0, values="token"))  # a text of some length
    shortest, kept = generator.sample("go", grammar)[0], 0
    for budget in range(len(shortest.tokens) - 4, len(shortest.tokens) + 1):
        try:
            result = generator.sample("go", grammar, max_tokens=budget)[0]
        except tf.errors.BudgetTooSmall:
            continue
        kept += 1
        assert len(result.tokens) <= budget and grammar.parse(result.text)
    assert kept


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_whitespace_is_not_cut_off_what_the_tokenizer_joins_it_with(temperature: float) -> None:
    """` "` is one token: after a space alone a model that wanted a number is asked for a string in pieces
    which it has never seen."""
    cut = {}
    for forced in ("canonical", "any"):
        generator = made(3, SPACED, drafter=None, sampler=tf.Local(temperature, forced=forced))  # type: ignore[arg-type]
        spelled, encode = generator.vocabulary.tokens, generator.tokenizer.encode
        cut[forced] = 0
        for seed in range(12):
            tokens = generator.sample(f"go {seed}", STRINGS, seed=seed)[0].tokens
            for one, after in itertools.pairwise(tokens):
                if spelled[one].isspace() and spelled[after][:1] == b'"':
                    whole = encode((spelled[one] + b'"').decode(), add_special_tokens=False)
                    cut[forced] += whole[0] != one
    assert cut["canonical"] == 0 < cut["any"]


def test_whitespace_that_may_stand_alone_is_drawn() -> None:
    generator = made(3, SPACED)
    spelling = Spelling(list(generator.vocabulary.tokens), generator.spell)
    space = spelling.ids[b" "]
    for kind, joined in (("string", True), ("integer", False), (["string", "integer"], False)):
        automaton = tf.json_schema({"properties": {"a": {"type": kind}}, "required": ["a"]}).compile(
            generator.vocabulary
        )
        state = automaton.step_bytes(automaton.start, b'{"a":')
        assert automaton.allows(state, space) and is_joined(automaton, state, space, spelling) == joined


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(tf.errors.OptionError, match="canonical"):
        tf.Local(forced="sometimes")  # type: ignore[arg-type]


def test_a_token_that_goes_on_beyond_a_forced_text_is_drawn() -> None:
    """`", "` is one token: where `",` is left of a forced text, `"` alone would be another cut."""
    generator = tf.Generator(drafter=None)
    fields = {"day": {"type": "string", "format": "date"}, "paid": {"type": "boolean"}}
    schema = {"properties": fields, "required": ["day", "paid"], "additionalProperties": False}
    automaton = tf.json_schema(schema).compile(generator.vocabulary)
    spelling = Spelling(list(generator.vocabulary.tokens))
    state = automaton.step_bytes(automaton.start, b'{"day": "2024-03-17')
    assert automaton.forced_bytes(state) == b'",' and len(forced_tokens(automaton, state, spelling)) <= 1
    assert automaton.allows(state, spelling.ids[b'", "'])
    result = generator.sample("It was paid on 2024-03-17.", tf.json_schema(schema))[0]
    assert result.text == json.dumps(result.value) and result.logprob is not None and result.logprob > -10


def test_no_forced_token_stands_where_a_longer_one_may() -> None:
    generator = tf.Generator(drafter=None)
    texts, spelling = generator.vocabulary.tokens, Spelling(list(generator.vocabulary.tokens))
    automaton = tf.json_schema(ORDER).compile(generator.vocabulary)
    document = generator.sample(PROMPT, tf.json_schema(ORDER))[0].text.encode()
    state, seen = automaton.start, 0
    for place in range(len(document)):
        forced, at = bytes(automaton.forced_bytes(state)), state
        plan = forced_tokens(automaton, state, spelling)
        for number, token in enumerate(plan[:-1]):
            left = len(forced) - sum(len(texts[one]) for one in plan[:number])
            longer = [one for one in automaton.allowed_tokens(at).tolist() if len(texts[one]) > left]
            assert not longer, (document[:place], texts[token], [texts[one] for one in longer])
            at, seen = automaton.advance(at, token), seen + 1
        state = automaton.step_bytes(state, document[place : place + 1])
    assert seen > 10


def test_the_demonstration_is_written_as_its_model_writes() -> None:
    result, fault = demonstrate()
    assert fault is None and result.text == json.dumps(result.value)
    assert result.logprob is not None and result.logprob > -10
