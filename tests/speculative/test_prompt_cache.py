"""Prompts that earlier calls have run: not run again, in bounded memory, and never of another model."""

from __future__ import annotations

import random

import pytest
import torch
from tests.generation.conftest import small_llama

import tokenform as tf
from tokenform.decoding.speculative.backbone import Backbone, PromptCache
from tokenform.decoding.speculative.backbone.model_mark import model_mark
from tokenform.decoding.speculative.tree import DraftTree
from tokenform.errors import OptionError

from .models import ARCHITECTURES, VOCABULARY, model, replay

TREE = DraftTree.chain([3, 4])


def prompt(length: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(VOCABULARY) for _ in range(length)]


def run(net, kept: PromptCache, texts: list[list[int]]) -> tuple[int, int]:
    """(tokens of the texts that were run, passes) of a backbone of its own, which scores a tree behind each.

    All logits are those of full passes without a cache.
    """
    backbone = Backbone(net, share=2, prompts=kept)
    seqs = [backbone.open(text) for text in texts]
    scored = backbone.score({seq: TREE for seq in seqs})
    for seq, text in zip(seqs, texts, strict=True):
        for row, more in zip(scored[seq], ([], [3], [3, 4]), strict=True):
            torch.testing.assert_close(row, replay(net, [*text, *more]), atol=1e-9, rtol=0)
    counters = backbone.counters
    return counters.prefilled + counters.scored - len(TREE) * len(texts), counters.forwards


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_prompt_of_an_earlier_call_is_not_run_again(name):
    net, kept, first = model(name), PromptCache(1 << 24), prompt(60)
    assert run(net, kept, [first])[0] == 60
    assert run(net, kept, [first]) == (1, 1)  # its last token
    assert run(net, kept, [[*first[:40], 7, 8, 9, 10]])[0] == 4  # from where they part
    assert run(net, kept, [[*first[:40], 7, 8, 9, 11], [*first, 5, 6], first[:20]])[0] == 1 + 2 + 1
    assert run(net, kept, [prompt(60, seed=1)])[0] == 60


def test_a_batch_runs_what_is_new_once():
    net, kept, first = model("llama"), PromptCache(1 << 24), prompt(100)
    assert run(net, kept, [first] * 8)[0] == 100 + 7  # and the last token of each
    longer = [*first, *prompt(50, seed=2)]
    assert run(net, kept, [longer] * 8)[0] == 50 + 7
    assert run(net, kept, [longer, first, [*longer, 9]])[0] == 3


def test_it_is_known_beforehand_what_the_pass_of_a_first_draft_runs():
    net, kept, first = model("llama"), PromptCache(1 << 24), prompt(60)
    for text, wanted in ((first, 60), (first, 1), ([*first[:40], 7, 8, 9], 3), (prompt(600, seed=1), 1)):
        backbone = Backbone(net, prompts=kept)
        seq = backbone.open(text)
        assert backbone.pending(seq) == wanted
        backbone.score({seq: TREE})
        counters = backbone.counters
        assert counters.forwards == 1 + 2 * (
            wanted != len(text) == 600
        )  # a long prompt is run in parts before
        assert counters.forwards > 1 or counters.positions == wanted + len(TREE)
        backbone.commit(seq, [3])
        assert backbone.pending(seq) == 1
    alone = Backbone(net)
    assert alone.pending(alone.open(first)) == 60


def test_memory_is_bounded_and_the_oldest_goes():
    net = model("llama")
    kept = PromptCache(1 << 30)
    run(net, kept, [prompt(64)])
    a_prompt = kept.bytes
    kept = PromptCache(3 * a_prompt)
    for seed in range(3):
        run(net, kept, [prompt(64, seed)])
    assert kept.bytes == 3 * a_prompt
    run(net, kept, [prompt(64, 0)])
    run(net, kept, [prompt(64, 3)])  # in place of 1, which was used before 0 was
    assert kept.bytes == 3 * a_prompt
    assert [run(net, kept, [prompt(64, seed)])[0] for seed in (0, 2, 3)] == [1, 1, 1]
    assert run(net, kept, [prompt(64, 1)])[0] == 64
    assert run(net, kept, [prompt(64 * 4, 9)])[0] == 256 and kept.bytes <= 3 * a_prompt
    nothing = PromptCache(0)
    assert [run(net, nothing, [prompt(64)])[0] for _ in range(2)] == [64, 64] and nothing.bytes == 0
    with pytest.raises(OptionError, match="prompt_cache"):
        PromptCache(-1)


def test_random_prompts_against_a_list_of_all():
    """With room for all, just what no earlier prompt began with is run; the bytes are those of distinct
    tokens.
    """
    rng, kept, net = random.Random(4), PromptCache(1 << 30), model("llama", layers=1)
    earlier: list[list[int]] = []
    for _ in range(60):
        base = rng.choice(earlier) if earlier and rng.random() < 0.7 else []
        text = base[: rng.randrange(len(base) + 1)] + [rng.randrange(3) for _ in range(rng.randrange(16, 40))]
        known = max((_shared(text[:-1], one) for one in earlier), default=0)
        assert run(net, kept, [text])[0] == len(text) - (known if known >= 16 else 0)
        earlier.append(text)
    distinct = {tuple(one[: i + 1]) for one in earlier for i in range(len(one))}
    assert kept.bytes == len(distinct) * 2 * 2 * 8 * 8  # keys and values, two heads of eight float64


def _shared(a: list[int], b: list[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _write(net):
    net.model.layers[0].mlp.up_proj.weight.data.mul_(1.01)  # which leaves the tensor's version


def _step(net):
    with torch.no_grad():
        net.model.norm.weight.add_(0.1)


def _replace(net):
    net.lm_head.weight = torch.nn.Parameter(net.lm_head.weight.detach().clone())


def _hook(net):
    net.model.layers[0].register_forward_hook(lambda *_: None)


def _adapter(net):
    net.model.layers[0].mlp._disable_adapters = True


@pytest.mark.parametrize("change", [_write, _step, _replace, _hook, _adapter])
def test_a_model_that_has_changed_finds_nothing(change):
    net, kept, text = small_llama(VOCABULARY), PromptCache(1 << 24), prompt(40)
    first = Backbone(net, prompts=kept)
    first.score({first.open(text): TREE})
    mark = model_mark(net)
    assert mark is not None and mark == model_mark(net)
    change(net)
    assert model_mark(net) != mark
    again = Backbone(net, prompts=kept)
    again.score({again.open(text): TREE})
    assert again.counters.prefilled + again.counters.scored - len(TREE) == 40


def test_angles_that_depend_on_the_length_keep_nothing():
    net = small_llama(VOCABULARY)
    net.config.rope_parameters = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    assert model_mark(net) is None
    kept = PromptCache(1 << 24)
    backbone = Backbone(net, prompts=kept)
    backbone.score({backbone.open(prompt(40)): TREE})
    assert kept.bytes == 0


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 6}, "ok": {"type": "boolean"}},
    "required": ["name", "ok"],
    "additionalProperties": False,
}
LONG = "Ada Lovelace was born in London in 1815 and wrote about engines. " * 3


@pytest.mark.parametrize("drafter", [None, "auto"])
@pytest.mark.parametrize("sampler", [tf.Local(1.3, values="token"), tf.SMC(4)])
def test_generators_write_the_same_texts_with_fewer_tokens(drafter, sampler):
    vocabulary = tf.Vocabulary([b"", *(bytes([i]) for i in range(256)), b'{"', b'": ', b'"}'], eos=[0])
    net, widths = small_llama(len(vocabulary.tokens), context=512), []

    def hook(_, args, named, output):
        widths.append((*args, named.get("input_ids"))[0].numel())

    net.register_forward_hook(hook, with_kwargs=True)
    ids = [b + 1 for b in LONG.encode()]

    def texts(writer: tf.Generator) -> tuple[list[tuple[int, ...]], int]:
        widths.clear()
        asked = [ids, ids[:150], ids]
        got = writer.sample(asked, tf.json_schema(SCHEMA), n=4, seed=3, max_tokens=40, sampler=sampler)
        return [tuple(r.tokens) for one in got for r in one], sum(widths)

    fresh = tf.Generator(net, vocabulary, drafter=drafter, prompt_cache=0)
    texts(fresh)  # looks at the model
    want = texts(fresh)[0]
    # samplers of whole texts pad what prompts ask for side by side; prompts one by one show the cache alone
    size = 16 if isinstance(sampler, tf.Local) else 1
    writer = tf.Generator(net, vocabulary, drafter=drafter, batch_size=size)
    first, second = texts(writer), texts(writer)
    assert first[0] == second[0] == want
    if drafter is None:  # how much is drafted depends on what passes have cost
        assert first[1] - second[1] >= len(ids) - 1
