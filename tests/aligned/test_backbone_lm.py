"""The backbone as a language model: equal to plain forward passes for any order of requests, and cheap for
what it knows, whatever the model can do.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from toy import TOKENS, StringsAutomaton  # noqa: E402

from tokenform.decoding.aligned.asap import ASAp  # noqa: E402
from tokenform.decoding.aligned.backbone_lm import BackboneLM  # noqa: E402
from tokenform.decoding.aligned.cars import CARS  # noqa: E402
from tokenform.decoding.aligned.enumeration import enumerate_target, total_variation  # noqa: E402
from tokenform.decoding.aligned.smc import SMC  # noqa: E402
from tokenform.decoding.speculative.backbone import Backbone  # noqa: E402
from tokenform.errors import ModelError  # noqa: E402

VOCABULARY = 13
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": VOCABULARY}


def tiny(kind, seed=0):
    torch.manual_seed(seed)
    if kind == "gpt2":
        config = transformers.GPT2Config(
            n_embd=16,
            n_layer=2,
            n_head=2,
            vocab_size=VOCABULARY,
            n_positions=64,
            bos_token_id=0,
            eos_token_id=5,
        )
        model = transformers.GPT2LMHeadModel(config)
    elif kind == "llama":
        config = transformers.LlamaConfig(
            **SIZES, intermediate_size=24, num_key_value_heads=1, bos_token_id=0, eos_token_id=5
        )
        model = transformers.LlamaForCausalLM(config)
    else:
        config = transformers.MistralConfig(
            **SIZES,
            intermediate_size=24,
            num_key_value_heads=1,
            sliding_window=4,
            bos_token_id=0,
            eos_token_id=5,
        )
        model = transformers.MistralForCausalLM(config)
    for parameter in model.parameters():
        parameter.data *= 4 if parameter.dim() > 1 else 1
    return model.eval()


def plain(model, prefix):
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([prefix])).logits[0, -1]
    return torch.log_softmax(logits.double(), -1).numpy()


def language_model(model, mode="tree", **options):
    """The adapter in a mode, which may be less than the model can do; "called" hides what it is."""
    if mode == "called":
        return BackboneLM(lambda **named: model(**named), eos=[5], size=VOCABULARY, **options)
    if mode == "called with a cache":
        return BackboneLM(Called(model), eos=[5], size=VOCABULARY, **options)
    lm = BackboneLM(model, eos=[5], **options)
    if mode != "tree":
        lm._backbone = Backbone(model, mode)
    return lm


class Called:
    """Has no config, and says what it takes."""

    def __init__(self, model):
        self._model = model

    def __call__(self, input_ids, attention_mask, position_ids, past_key_values, use_cache):
        return self._model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            use_cache=use_cache,
        )


@pytest.mark.parametrize("cache_bytes", [512 << 20, 4000, 0])
@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *((kind, mode) for kind in ("llama", "gpt2") for mode in ("tree", "chain", "plain")),
        ("sliding", "tree"),
        ("sliding", "plain"),
        ("sliding", "called with a cache"),
        ("llama", "called with a cache"),
        ("llama", "called"),
    ],
)
def test_any_order_of_requests_gives_the_plain_distributions(kind, mode, cache_bytes):
    model = tiny(kind)
    lm = language_model(model, mode, cache_bytes=cache_bytes)
    assert lm.vocab_size == VOCABULARY
    assert lm.eos == (5,)
    rng = np.random.default_rng(0)
    stem = tuple(rng.integers(0, VOCABULARY, 7).tolist())
    known = [stem]
    for _ in range(12):
        batch = []
        for _ in range(int(rng.integers(1, 5))):
            base = known[int(rng.integers(len(known)))]
            base = base[: int(rng.integers(1, len(base) + 1))]
            batch.append((*base, *rng.integers(0, VOCABULARY, int(rng.integers(0, 4))).tolist()))
        known += batch
        for prefix, row in zip(batch, lm.logprobs(batch), strict=True):
            assert np.abs(row - plain(model, prefix)).max() < 2e-5
            assert np.logaddexp.reduce(row) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("mode", ["chain", "called with a cache"])
def test_known_prefixes_are_not_run_again(mode, monkeypatch):
    model = tiny("llama")
    columns = []
    forward = model.forward

    @functools.wraps(forward)
    def spy(*args, **kwargs):
        columns.append(tuple(kwargs["input_ids"].shape))
        return forward(*args, **kwargs)

    lm = language_model(model, mode)
    monkeypatch.setattr(model, "forward", spy)
    prompt = tuple(range(1, 10))
    lm.logprobs([prompt])
    lm.logprobs([(*prompt, 1), (*prompt, 2), (*prompt, 2)])
    lm.logprobs([(*prompt, 1, 3), (*prompt, 2, 4), (*prompt, 2, 5)])
    assert columns == [(1, 9), (2, 1), (3, 1)]
    # a chain of prefixes is one row of several columns
    lm.logprobs([(*prompt, 2, 5, 6), (*prompt, 2, 5, 6, 7), (*prompt, 2, 5, 6, 7, 8)])
    assert columns[-1] == (1, 3)
    assert lm.forwards == 4


@pytest.mark.parametrize("mode", ["tree", "chain", "plain"])
def test_samplers_on_a_small_transformer(mode):
    model = tiny("llama", seed=1)
    strings = [b"00000", b"10110", b"1000", b"0110"]
    automaton = StringsAutomaton(strings, [*TOKENS[:5], b"<eos>", *([b""] * 7)], (5,))
    problem = CARS().bind(language_model(model, mode), automaton, prompt=[0, 3])
    exact = enumerate_target(problem)
    for tokens, value in exact.log_measure.items():
        whole = (0, 3, *tokens, 5)
        by_hand = sum(plain(model, whole[:i])[whole[i]] for i in range(2, len(whole)))
        assert value == pytest.approx(by_hand, abs=1e-4)
    sample = ASAp(until=0.01).sample(problem, 5, seed=0)
    assert sample.certificate.log_lower - 1e-9 <= exact.log_z <= sample.certificate.log_upper + 1e-9
    runs = CARS().sample(CARS().bind(language_model(model, mode), automaton, prompt=[0, 3]), 200, seed=0)
    distribution: dict[tuple[int, ...], float] = {}
    for draw in runs.draws:
        distribution[draw.tokens] = distribution.get(draw.tokens, 0.0) + 1 / 200
    assert total_variation(exact.probabilities, distribution) <= 0.2
    log_z = SMC(20).sample(problem, 20, seed=0).log_z
    assert abs(log_z.value - exact.log_z) <= 4.5 * log_z.error + 1e-9


def test_what_can_not_be_run_is_refused():
    model = tiny("llama")
    with pytest.raises(ModelError, match="EOS"):
        BackboneLM(model, eos=[])
    with pytest.raises(ModelError, match="prompt"):
        BackboneLM(model, eos=[5]).logprobs([()])
    with pytest.raises(ModelError, match="not a model"):
        BackboneLM(None, eos=[5])
