"""What goes wrong around a text: streams given up, memory that runs out, models that take no trees."""

from __future__ import annotations

import functools

import pytest
import torch

import tokenform as tf
from tokenform import errors
from tokenform.decoding.draws import MaskedSampler
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.drafters import DraftModel, Forced, Merge, NGram
from tokenform.decoding.speculative.policies import Fixed
from tokenform.decoding.speculative.request import Request

from .models import model
from .plain import plain
from .running import decode

TOKENS = [b"", *(bytes([i]) for i in range(32, 127)), b"ab", b"12"]
GRAMMAR = tf.regex(r"[a-d]{3,9}-[0-9]{2,8}!")


@functools.cache
def vocabulary() -> tf.Vocabulary:
    return tf.Vocabulary(TOKENS, eos=[0])


@functools.cache
def network(name: str = "llama", seed: int = 0):
    return model(name, seed=seed, vocabulary=len(TOKENS))


def requests(count: int, kind: str = "grammar") -> list[Request]:
    sampler = MaskedSampler(tf.Local(0.9, values="token"), len(TOKENS), [0])
    automaton = GRAMMAR.compile(vocabulary()) if kind == "grammar" else None
    eos = frozenset([0])
    return [Request([5, 6, 5], sampler, automaton, max_tokens=24, eos=eos, seed=i) for i in range(count)]


@pytest.mark.parametrize("taken", range(1, 6))
def test_a_stream_that_is_given_up_leaves_nothing_in_any_cache(taken):
    drafter = DraftModel(network("qwen3", 2), tokens=3)
    both = Merge(Forced(), drafter)  # Fixed: also where it does not pay, it is asked
    writer = tf.Generator(network(), vocabulary(), drafter=both, sampler=tf.Local(0.8), policy=Fixed)
    want = writer.sample([5, 6], GRAMMAR, seed=1)[0].tokens
    stream = writer.stream([5, 6], GRAMMAR, seed=1)
    for _ in range(taken):
        next(stream)
    assert drafter.sequences
    stream.close()
    assert drafter.sequences == 0
    assert writer.sample([5, 6], GRAMMAR, seed=1)[0].tokens == want


@pytest.mark.parametrize("after", [0, 1, 3, 5])
@pytest.mark.parametrize("persistent", [False, True])
def test_memory_that_runs_out_in_the_middle(monkeypatch, after, persistent):
    """Once: the text goes on as it would have.  For good: a clear error, and the next call works."""
    net = network("gemma3")
    writer = tf.Generator(net, vocabulary(), drafter=Merge(Forced(), NGram()), sampler=tf.Local(0.8))
    prompts = [[5, 6], [7, 8, 9], [5]]
    want = [r.tokens for (r,) in writer.sample(prompts, GRAMMAR, seed=2)]
    whole, passes = net.forward, 0

    @functools.wraps(whole)
    def forward(*arguments, **named):
        nonlocal passes
        passes += 1
        if passes == after + 1 or (persistent and passes > after):
            raise torch.OutOfMemoryError("no memory")
        return whole(*arguments, **named)

    monkeypatch.setattr(net, "forward", forward)
    if persistent:
        with pytest.raises(errors.ModelError, match="memory"):
            writer.sample(prompts, GRAMMAR, seed=2)
    else:
        assert [r.tokens for (r,) in writer.sample(prompts, GRAMMAR, seed=2)] == want
    assert passes > after
    monkeypatch.undo()
    assert [r.tokens for (r,) in writer.sample(prompts, GRAMMAR, seed=2)] == want


def causal_only(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **_):
    """An attention kernel that computes its own causal mask and takes no other, as flash attention does."""
    assert attention_mask is None or attention_mask.dim() == 2
    groups = query.shape[1] // key.shape[1]
    key, value = (part.repeat_interleave(groups, 1) for part in (key, value))
    new, all_ = query.shape[2], key.shape[2]
    mask = torch.ones(new, all_, dtype=torch.bool).tril(all_ - new)
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask, scale=scaling)
    return out.transpose(1, 2).contiguous(), None


def test_a_kernel_without_custom_masks_is_given_chains_and_says_so():
    import copy

    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import flash_attention_mask

    AttentionInterface.register("causal_only_of_test", causal_only)
    AttentionMaskInterface.register("causal_only_of_test", flash_attention_mask)
    reference, net = network(), copy.deepcopy(network())
    net.set_attn_implementation("causal_only_of_test")
    backbone = Backbone(net)
    assert backbone.mode == "chain" and "no custom mask" in backbone.notes[0]
    asked = requests(3)
    want = [plain(reference, one) for one in asked]
    for drafter in (None, Merge(Forced(), NGram())):
        got = decode(backbone, asked, drafter)
        assert [output.tokens for output in got] == want
        assert "no custom mask" in got[0].report.notes[0]
    assert sum(output.report.accepted for output in got) > 0
    with pytest.raises(errors.OptionError, match="tree"):
        Backbone(net, "tree")


def test_a_recurrent_model_is_run_plainly_by_a_generator_and_says_so():
    import transformers as hf

    torch.manual_seed(0)
    config = hf.MambaConfig(vocab_size=len(TOKENS), hidden_size=16, num_hidden_layers=2, state_size=4)
    net = hf.MambaForCausalLM(config).double().eval()
    texts = []
    for drafter in (None, "auto", Merge(Forced(), NGram())):
        writer = tf.Generator(net, vocabulary(), drafter=drafter, sampler=tf.Local(0.8))
        results = [r for (r,) in writer.sample([[5, 6], [7, 8, 9]], GRAMMAR, seed=2)]
        texts.append([r.tokens for r in results])
        if not isinstance(drafter, str | None):
            assert "recurrent" in results[0].report.notes[0] and results[0].stats.drafted == 0
    assert texts[0] == texts[1] == texts[2]
