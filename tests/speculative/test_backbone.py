"""A tree forward equals per-path forwards, before and after compaction, forks, drops and cuts."""

from __future__ import annotations

import copy
import functools
import inspect
import random
from types import SimpleNamespace

import pytest
import torch

from tokenform.decoding.speculative.backbone import Backbone, Compiled, choice, trees
from tokenform.decoding.speculative.backbone.facts import cache_name
from tokenform.decoding.speculative.backbone.slots import SlotCache
from tokenform.decoding.speculative.tree import DraftTree
from tokenform.errors import InvalidState, ModelError, OptionError, PromptTooLong

from .models import ARCHITECTURES, VOCABULARY, model, replay

TOLERANCE = 1e-10


def random_tree(rng: random.Random, nodes: int, vocabulary: int = VOCABULARY) -> DraftTree:
    tree = DraftTree()
    while len(tree) < nodes:
        tree.add(rng.randrange(-1, len(tree)), rng.randrange(vocabulary))
    return tree


def error_at_every_node(net, backbone, seq, tree, logits) -> float:
    text = backbone.tokens(seq)
    return max(
        float((logits[n + 1] - replay(net, text + (tree.path(n) if n >= 0 else []))).abs().max())
        for n in range(-1, len(tree))
    )


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_tree_forward_equals_path_forwards(name, attention):
    net = model(name, attention=attention)
    rng = random.Random(1)
    backbone = Backbone(net)
    assert backbone.mode == "tree"
    tolerance = TOLERANCE if attention == "sdpa" else 1e-4  # eager attention's softmax is float32
    seqs = [backbone.open([rng.randrange(VOCABULARY) for _ in range(n)]) for n in (1, 5, 19)]
    for _ in range(3):
        trees = {s: random_tree(rng, rng.randrange(0, 9)) for s in seqs}
        scored = backbone.score(trees)
        for s, tree in trees.items():
            assert error_at_every_node(net, backbone, s, tree, scored[s]) <= tolerance
            node = rng.randrange(-1, len(tree))
            path = tree.path(node) if node >= 0 else []
            backbone.commit(s, path + [rng.randrange(VOCABULARY)] * rng.randrange(2))
        backbone.compact()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_rejected_tokens_leave_no_trace_after_compaction(name):
    net = model(name)
    rng = random.Random(2)
    backbone = Backbone(net)
    seq = backbone.open([1, 2, 3])
    for _ in range(12):
        tree = random_tree(rng, 12)
        backbone.score({seq: tree})
        backbone.commit(seq, [*tree.path(rng.randrange(len(tree))), rng.randrange(VOCABULARY)])
    row = backbone._tracks[seq].place.row
    backbone.score({seq: DraftTree()})
    before = backbone.score({seq: random_tree(random.Random(5), 6)})[seq]
    backbone.compact()
    assert row.top == row.used
    after = backbone.score({seq: random_tree(random.Random(5), 6)})[seq]
    assert float((before - after).abs().max()) <= TOLERANCE


def test_forks_share_the_prompt_and_part_ways():
    net = model("llama")
    backbone = Backbone(net, share=3)
    first = backbone.open(list(range(20)))
    forks = [backbone.fork(first) for _ in range(5)]
    assert backbone.counters.forwards == 1
    for i, s in enumerate(forks):
        backbone.commit(s, [i, i + 1])
    scored = backbone.score({s: DraftTree.chain([7, 8]) for s in forks})
    assert backbone.counters.forwards == 2
    for s in forks:
        assert error_at_every_node(net, backbone, s, DraftTree.chain([7, 8]), scored[s]) <= TOLERANCE


def test_a_prompt_that_is_in_the_cache_is_not_run_again():
    backbone = Backbone(model("llama"))
    prompt = list(range(40))
    backbone.score({backbone.open(prompt): DraftTree()})
    before = backbone.counters.prefilled
    net_logits = backbone.score({(s := backbone.open([*prompt[:30], 50, 51])): DraftTree()})[s]
    assert backbone.counters.prefilled - before == 1
    assert float((net_logits[0] - replay(model("llama"), backbone.tokens(s))).abs().max()) <= TOLERANCE


def passes(monkeypatch, net) -> list[tuple[int, int]]:
    """(lines, tokens of a line) of each pass from now on."""
    seen, whole = [], type(net).forward

    @functools.wraps(whole)
    def forward(self, input_ids=None, **named):
        seen.append(tuple(input_ids.shape))
        return whole(self, input_ids=input_ids, **named)

    monkeypatch.setattr(type(net), "forward", forward)
    return seen


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_a_long_prompt_that_joins_costs_its_own_tokens(name, monkeypatch):
    net, rng = model(name), random.Random(1)
    backbone = Backbone(net)
    rows = [backbone.open([rng.randrange(VOCABULARY) for _ in range(9)]) for _ in range(3)]
    backbone.score({seq: DraftTree() for seq in rows})
    for seq in rows:
        backbone.commit(seq, [seq, 5])
    seen = passes(monkeypatch, net)
    joining = backbone.open([rng.randrange(VOCABULARY) for _ in range(400)])
    tree = DraftTree.chain([3, 4])
    scored = backbone.score({seq: tree for seq in (*rows, joining)})
    assert sum(lines * tokens for lines, tokens in seen) <= 450 and len(seen) == 2
    for seq in (*rows, joining):
        assert error_at_every_node(net, backbone, seq, tree, scored[seq]) <= TOLERANCE


@pytest.mark.parametrize("share", [3, 8])
def test_equal_beginnings_are_run_once(share, monkeypatch):
    net, rng = model("llama"), random.Random(2)
    backbone = Backbone(net, share=share)
    prompt = [rng.randrange(VOCABULARY) for _ in range(300)]
    seen = passes(monkeypatch, net)
    equal = [backbone.open(prompt) for _ in range(8)]
    scored = backbone.score({seq: DraftTree() for seq in equal})
    assert sum(lines * tokens for lines, tokens in seen) <= 320
    other = [backbone.open([*prompt[:100], i, 7, 8]) for i in range(4)]
    scored |= backbone.score({seq: DraftTree() for seq in other})
    assert backbone.counters.prefilled == 298 + 4 * 2
    for seq in (*equal, *other):
        assert error_at_every_node(net, backbone, seq, DraftTree(), scored[seq]) <= TOLERANCE
        backbone.commit(seq, [seq, 3])
    scored = backbone.score({seq: DraftTree.chain([1, 2]) for seq in (*equal, *other)})
    for seq in (*equal, *other):
        assert error_at_every_node(net, backbone, seq, DraftTree.chain([1, 2]), scored[seq]) <= TOLERANCE


def test_a_short_beginning_widens_no_row():
    """Sequences of one row attend over each other's slots: they share it where a copy costs more."""
    backbone, rng = Backbone(model("llama")), random.Random(6)
    for length, rows in ((trees._COPIED // 2, 4), (2 * trees._COPIED, 1)):
        prompt = [rng.randrange(VOCABULARY) for _ in range(length)]
        seqs = [backbone.open(prompt) for _ in range(4)]
        scored = backbone.score({seq: DraftTree() for seq in seqs})
        assert len({id(backbone._tracks[seq].place.row) for seq in seqs}) == rows
        for seq in seqs:
            assert error_at_every_node(model("llama"), backbone, seq, DraftTree(), scored[seq]) <= TOLERANCE


def test_long_prompts_are_run_in_chunks(monkeypatch):
    """No pass is wider than a chunk, so no mask is a square of the prompt."""
    monkeypatch.setattr(trees, "_CHUNK", 64)
    net, rng = model("gemma3"), random.Random(3)
    backbone = Backbone(net)
    rows = [backbone.open([rng.randrange(VOCABULARY) for _ in range(n)]) for n in (300, 290, 90, 5)]
    seen = passes(monkeypatch, net)
    scored = backbone.score({seq: DraftTree() for seq in rows})
    assert max(tokens for _, tokens in seen) <= 64
    assert sum(lines * tokens for lines, tokens in seen) <= 1.2 * (300 + 290 + 90 + 5)
    for seq in rows:
        assert error_at_every_node(net, backbone, seq, DraftTree(), scored[seq]) <= TOLERANCE


def test_a_fork_takes_the_scored_tree_along():
    net = model("gemma3")
    backbone = Backbone(net, share=1)
    seq = backbone.open([4, 5, 6])
    tree = random_tree(random.Random(3), 8)
    backbone.score({seq: tree})
    other = backbone.fork(seq)
    deepest = max(range(len(tree)), key=lambda n: tree.depths[n])
    for s in (other, seq):
        backbone.commit(s, tree.path(deepest))
        known = backbone.last_logits(s)
        assert known is not None
        forwards = backbone.counters.forwards
        assert torch.equal(backbone.score({s: DraftTree()})[s][0], known)
        assert backbone.counters.forwards == forwards
    for s in (other, seq):
        scored = backbone.score({s: DraftTree.chain([1])})[s]
        assert error_at_every_node(net, backbone, s, DraftTree.chain([1]), scored) <= TOLERANCE


def fuzz(
    rng: random.Random, name: str, steps: int, mode: str | None = None, compiled: Compiled | None = None
) -> float:
    """Random open, fork, drop, score, commit, cut and compact; the largest error against a replay."""
    net = model(name)
    backbone = Backbone(net, mode, share=rng.randrange(1, 4), compiled=compiled)
    chains = backbone.mode == "chain"
    trees: dict[int, DraftTree] = {}
    worst = 0.0
    for _ in range(steps):
        seqs = backbone.sequences
        act = rng.choice(
            ["open", "fork", "drop", "score", "score", "commit", "commit", "cut", "compact", "fault"]
        )
        if act == "open" and len(seqs) < 5:
            backbone.open([rng.randrange(VOCABULARY) for _ in range(rng.choice([1, 3, 18]))])
        elif not seqs:
            continue
        elif act == "fork" and len(seqs) < 6:
            seq = rng.choice(seqs)
            new = backbone.fork(seq)
            if seq in trees and not chains:
                trees[new] = trees[seq]
            elif chains:
                trees.pop(seq, None)
        elif act == "drop" and len(seqs) > 2:
            trees.pop(s := rng.choice(seqs), None)
            backbone.drop(s)
        elif act == "score":
            asked = {
                s: DraftTree.chain([rng.randrange(9) for _ in range(rng.randrange(4))])
                if chains
                else random_tree(rng, rng.randrange(6), 9)
                for s in rng.sample(seqs, rng.randrange(1, len(seqs) + 1))
            }
            scored = backbone.score(asked)
            trees.update(asked)
            for s, tree in asked.items():
                worst = max(worst, error_at_every_node(net, backbone, s, tree, scored[s]))
        elif act == "commit":
            s = rng.choice(seqs)
            tree = trees.pop(s, None)
            path = tree.path(rng.randrange(len(tree))) if tree and rng.random() < 0.8 else []
            if len(backbone.tokens(s)) < 60:
                backbone.commit(s, path + [rng.randrange(9) for _ in range(rng.randrange(2))])
        elif act == "cut":
            trees.pop(s := rng.choice(seqs), None)
            backbone.truncate(s, rng.randrange(1, len(backbone.tokens(s)) + 1))
        elif act == "compact" and backbone.mode == "tree":
            backbone.compact()
        elif act == "fault" and compiled is None:  # what is compiled calls no other forward
            s = rng.choice(seqs)
            trees.pop(s, None)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(net, "forward", out_of_memory)
                tree = DraftTree.chain([1, 2])
                with pytest.raises(MemoryError):
                    backbone.score({s: tree})
    assert compiled is None or not backbone.notes
    for s in backbone.sequences:
        scored = backbone.score({s: DraftTree()})[s]
        worst = max(worst, error_at_every_node(net, backbone, s, DraftTree(), scored))
        backbone.drop(s)
    return worst


def out_of_memory(*_: object, logits_to_keep: int = 0, past_key_values: object = None, **__: object) -> None:
    raise MemoryError("out of memory")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_random_histories_equal_a_fresh_replay(name):
    for seed in range(3):
        assert fuzz(random.Random(seed), name, 40) <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "gemma3"])
def test_random_histories_of_compiled_passes_equal_a_fresh_replay(name):
    compiled = Compiled("eager")
    for seed in range(6):
        assert fuzz(random.Random(seed), name, 40, compiled=compiled) <= TOLERANCE
    assert len(compiled.checked) > 4


@pytest.mark.parametrize("mode", ["chain"])
def test_random_histories_of_chains_equal_a_fresh_replay(mode):
    for seed in range(3):
        assert fuzz(random.Random(seed), "llama", 40, mode) <= TOLERANCE


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_ten_thousand_random_histories():
    rng = random.Random(7)
    for i in range(10_000):
        assert fuzz(rng, ARCHITECTURES[i % 5], 12) <= TOLERANCE, i


def test_errors_name_what_is_wrong():
    backbone = Backbone(model("gpt2"))
    with pytest.raises(OptionError, match="empty"):
        backbone.open([])
    with pytest.raises(OptionError, match="vocabulary"):
        backbone.open([VOCABULARY])
    with pytest.raises(PromptTooLong):
        backbone.open([1] * 513)
    with pytest.raises(InvalidState):
        backbone.fork(99)
    with pytest.raises(OptionError, match="mode"):
        Backbone(model("gpt2"), mode="forest")


def test_encoder_decoder_is_refused():
    import transformers as hf

    net = hf.T5ForConditionalGeneration(
        hf.T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    )
    with pytest.raises(ModelError, match="encoder-decoder"):
        Backbone(net)


def test_a_recurrent_model_is_served_plainly_and_says_so():
    import transformers as hf

    torch.manual_seed(0)
    net = hf.MambaForCausalLM(
        hf.MambaConfig(vocab_size=31, hidden_size=16, num_hidden_layers=2, state_size=4)
    )
    net = net.double().eval()
    backbone = Backbone(net)
    assert backbone.mode == "plain" and "recurrent" in backbone.notes[0]
    seq = backbone.open([1, 2, 3])
    for token in (4, 5, 6):
        got = backbone.score({seq: DraftTree()})[seq][0]
        assert float((got - replay(net, backbone.tokens(seq))).abs().max()) <= 1e-8
        backbone.commit(seq, [token])
    got = backbone.score({seq: DraftTree.chain([1])})[seq]  # by a pass over the whole text
    assert float((got[1] - replay(net, [*backbone.tokens(seq), 1])).abs().max()) <= 1e-8


@pytest.mark.parametrize("name", ["cache", "past_key_values"])
@pytest.mark.parametrize("mode", ["tree", "chain", "plain"])
def test_a_cache_goes_by_the_name_that_the_model_gives_it(name, mode):
    net = model("llama")
    own = cache_name(net)

    def run(named):
        named[own] = named.pop(name, None)
        output = net(**named)
        return SimpleNamespace(logits=output.logits, **{name: output[own]})

    renamed = copy.copy(net)
    signature = inspect.signature(net.forward)
    renamed.forward = lambda **named: run(named)
    renamed.forward.__signature__ = signature.replace(
        parameters=[p.replace(name=name) if p.name == own else p for p in signature.parameters.values()]
    )
    ours, theirs = (Backbone(one, mode=mode) for one in (renamed, net))
    for backbone in (ours, theirs):
        seqs = [backbone.open([1, 2, 3]), backbone.open([4, 5])]
        backbone.score(dict.fromkeys(seqs, DraftTree()))
        for seq in seqs:
            backbone.commit(seq, [6])
    asked = [backbone.score(dict.fromkeys(backbone.sequences, DraftTree())) for backbone in (ours, theirs)]
    for got, want in zip(*(found.values() for found in asked), strict=True):
        assert torch.equal(got, want)
    assert ours.counters.positions == theirs.counters.positions


def _odd(name):
    """Models with states of other kinds than keys and values of the whole text."""
    import transformers as hf

    common = {"vocab_size": 31, "hidden_size": 32, "eos_token_id": 0, "bos_token_id": 1, "pad_token_id": 0}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 32}
    if name == "rwkv":
        return hf.RwkvForCausalLM(hf.RwkvConfig(**common, num_hidden_layers=2, attention_hidden_size=32))
    if name == "recurrent gemma":
        config = hf.RecurrentGemmaConfig(
            **common, **heads, num_hidden_layers=3, lru_width=32, attention_window_size=16
        )
        return hf.RecurrentGemmaForCausalLM(config)
    if name == "falcon h1":
        sizes = {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_n_groups": 1}
        return hf.FalconH1ForCausalLM(
            hf.FalconH1Config(**common, **heads, **sizes, num_hidden_layers=2, mamba_d_state=8)
        )
    return hf.Llama4ForCausalLM(
        hf.Llama4TextConfig(
            **common,
            **heads,
            num_hidden_layers=2,
            head_dim=8,
            num_local_experts=2,
            intermediate_size_mlp=32,
            attention_chunk_size=5,
        )
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["rwkv", "recurrent gemma", "falcon h1", "chunked"])
def test_odd_models_are_served_plainly_alone_and_in_batches(name):
    torch.manual_seed(1)
    net = _odd(name).eval()
    backbone = Backbone(net)
    assert backbone.mode == "plain" and backbone.notes
    texts = [[3, 4, 5, 6, 7], [8, 9]]
    seqs, batch = [backbone.open(text) for text in texts], Backbone(net)
    rows = [batch.open(text) for text in texts]
    for step in range(4):
        together = batch.score({row: DraftTree() for row in rows})
        for text, seq, row in zip(texts, seqs, rows, strict=True):
            alone = backbone.score({seq: DraftTree()})[seq][0]
            assert float((alone - together[row][0]).abs().max()) <= 1e-4
            assert float((alone - replay(net, text)).abs().max()) <= 1e-4
            text.append(10 + step)
            backbone.commit(seq, text[-1:])
            batch.commit(row, text[-1:])
    batch.drop(rows[0])
    alone = batch.score({rows[1]: DraftTree()})[rows[1]][0]
    assert float((alone - replay(net, texts[1])).abs().max()) <= 1e-4


def test_a_sliding_window_is_not_cut_back():
    net = model("mistral")
    net.config._attn_implementation = "flash_attention_2"
    try:
        best, why = choice._by_config(net)
    finally:
        net.config._attn_implementation = "sdpa"
    assert best == "plain" and "window" in why


@pytest.mark.parametrize(
    ("source", "to"), [([0, 1], [2, 3]), ([1, 3], [0, 1]), ([0, 1], [1, 3]), ([3, 0], [2, 1])]
)
def test_slots_are_copied_whether_they_follow_each_other_or_not(source, to):
    cache = SlotCache()
    held = torch.randn(1, 2, 4, 3)  # as many heads as slots: a turned copy would fit too
    cache.keys[0], cache.values[0] = held.clone(), held.clone() + 1
    cache.copy(0, source, 0, to, (1, 4))
    want = held.clone()
    for old, new in zip(source, to, strict=True):
        want[0, :, new] = held[0, :, old]
    assert torch.equal(cache.keys[0][:1, :, :4], want)
    assert torch.equal(cache.values[0][:1, :, :4], want + 1)
