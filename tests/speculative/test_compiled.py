"""Steps of decoding as compiled passes of fixed shapes: the texts are those of the model as it is."""

from __future__ import annotations

import copy
import random
import threading
from typing import Any

import pytest
import torch
import torch._dynamo
import transformers as hf

import tokenform as tf
from tokenform import errors
from tokenform.decoding.speculative.backbone import Backbone, Compiled, static_passes
from tokenform.decoding.speculative.drafters import Forced, Merge, NGram
from tokenform.decoding.speculative.policies import Fixed
from tokenform.decoding.speculative.tree import DraftTree

from .models import ARCHITECTURES, model, replay
from .small_heads import random_heads
from .test_backbone import random_tree
from .test_faults import GRAMMAR, TOKENS, network, vocabulary

PROMPTS = [[5, 6], [7, 8, 9], [5], [9] * 20, [7, 8]]


@pytest.fixture(autouse=True)
def without_kernels(monkeypatch):
    """What is compiled is traced, and then run operation by operation: no C++ compiler, seconds a shape."""
    monkeypatch.setattr(static_passes, "BACKEND", "eager")


def pair(net: Any, **options: Any) -> tuple[tf.Generator, tf.Generator]:
    return (
        tf.Generator(net, vocabulary(), **options),
        tf.Generator(net, vocabulary(), compile=True, **options),
    )


def tokens(writer: tf.Generator, prompts: Any = PROMPTS, **options: Any) -> list[list[int]]:
    results = writer.sample(prompts, GRAMMAR, **{"seed": 2, **options})
    return [r.tokens for one in results for r in one]


def compilations() -> int:
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def shapes(writer: tf.Generator) -> set[tuple[int, ...]]:
    """(rows, tokens, slots) of what has been compiled and found right."""
    return {key[1:] for key in writer._decoders._compiled.checked}


QUICK = ("llama", "gpt2", "gemma3")


@pytest.mark.parametrize(
    "name", [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in ARCHITECTURES]
)
def test_texts_are_those_of_the_model_as_it_is(name):
    options = {"drafter": Merge(Forced(), NGram()), "policy": lambda: Fixed(3)}
    plain, fast = pair(network(name), **options)
    sampler = tf.Local(0.9, top_p=0.9)
    assert tokens(fast, sampler=sampler) == tokens(plain, sampler=sampler)
    result = fast.sample(PROMPTS[0], GRAMMAR, seed=2, sampler=tf.Local(0.9, values="token"))[0]
    assert not result.report.notes and result.report.accepted
    assert {size for _, size, _ in shapes(fast)} <= {1, 4} and shapes(fast)


@pytest.mark.slow
@pytest.mark.parametrize("drafter", [None, "auto"])
def test_shapes_are_few_whatever_is_asked(drafter):
    """Each is compiled once; a second generator run over the same compiles nothing."""
    plain, fast = pair(network(), drafter=drafter)
    free = tf.regex("[a-c]{1,90}")
    before = compilations()
    asked = [(n, length) for n in (1, 3, 8) for length in (1, 30)]
    for count, length in asked:
        prompts = [[5 + i] * length for i in range(count)]
        assert tokens(fast, prompts) == tokens(plain, prompts)
        one = fast.sample(prompts, free, seed=1, max_tokens=40 + length)
        assert [r.tokens for (r,) in one] == [
            r.tokens for (r,) in plain.sample(prompts, free, seed=1, max_tokens=40 + length)
        ]
    made = compilations() - before
    assert made == len(shapes(fast)) <= (4 if drafter is None else 16)
    assert {rows for rows, _, _ in shapes(fast)} <= {1, 2, 4, 8} and {s for *_, s in shapes(fast)} == {256}
    for count, length in asked:
        tokens(fast, [[5 + i] * length for i in range(count)])
    if drafter is None:
        assert compilations() - before == made


def test_further_shapes_run_as_they_are(monkeypatch):
    monkeypatch.setattr(static_passes, "_MOST", 1)
    plain, fast = pair(network(), drafter=Merge(Forced(), NGram()))
    assert tokens(fast) == tokens(plain)
    (result,) = fast.sample([9] * 3, GRAMMAR, seed=2)
    assert len(shapes(fast)) == 1 and "more than 1 shapes" in result.report.notes[0]


class Graph:
    """Stands for a CUDA graph: works on the tensors of its capture, and overwrites its own output."""

    made = 0

    def __init__(self, run: Any) -> None:
        self.run, self.out = run, run()
        Graph.made += 1

    def replay(self) -> None:
        self.out.copy_(self.run())


@pytest.fixture
def graphs(monkeypatch):
    monkeypatch.setattr(Graph, "made", 0)
    monkeypatch.setattr(static_passes, "replays", lambda device: True)

    def captured(run: Any, *_: Any) -> tuple[Graph, torch.Tensor]:
        graph = Graph(run)
        return graph, graph.out

    monkeypatch.setattr(static_passes, "captured", captured)


def test_what_a_replay_overwrites_is_not_given_back(graphs):
    net = model("llama")
    backbone = Backbone(net, compiled=Compiled("eager"))
    seqs = [backbone.open(prompt) for prompt in ([1, 2, 3], [4, 5])]
    backbone.score({seq: DraftTree() for seq in seqs})
    kept = []
    for token in (3, 7, 9, 11):
        for seq in seqs:
            backbone.commit(seq, [token])
        got = backbone.score({seq: DraftTree() for seq in seqs})
        kept += [(backbone.tokens(seq), got[seq], backbone.last_logits(seq)) for seq in seqs]
    for text, logits, last in kept:
        want = replay(net, text)
        assert float((logits[0] - want).abs().max()) < 1e-10 and torch.equal(logits[0], last)
    assert Graph.made == 1


def test_graphs_are_captured_anew_where_the_cache_has_grown(graphs):
    plain, fast = pair(network(), drafter=None)
    prompts = [[5, 6] * 115, [7] * 225]
    free = tf.regex("[a-d]{40}")
    got = [r.tokens for (r,) in fast.sample(prompts, free, seed=3)]
    assert got == [r.tokens for (r,) in plain.sample(prompts, free, seed=3)]
    assert shapes(fast) == {(2, 1, 256), (2, 1, 512)} and Graph.made == 2


def test_a_capture_that_fails_leaves_the_compiled_pass(graphs, monkeypatch):
    def fails(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(static_passes, "captured", fails)
    plain, fast = pair(network(), drafter=Forced())
    assert tokens(fast) == tokens(plain) and shapes(fast)
    backbone = Backbone(network(), compiled=Compiled("eager"))
    seq = backbone.open([1, 2])
    backbone.score({seq: DraftTree()})
    for _ in range(2):
        backbone.commit(seq, [3])
        backbone.score({seq: DraftTree()})
    assert backbone.notes == [
        "compile=True: no CUDA graph can be captured of it (RuntimeError: operation not permitted when stream"
        " is capturing): it is compiled alone"
    ]


def test_graphs_of_the_model_as_it_is_need_no_compiler(graphs, monkeypatch):
    monkeypatch.setattr(torch, "compile", None)
    net = network()
    plain, fast = (
        tf.Generator(net, vocabulary(), drafter=Forced(), compile=way) for way in (False, "graphs")
    )
    assert tokens(fast) == tokens(plain)
    assert shapes(fast) and Graph.made


@pytest.mark.parametrize("name", QUICK)
def test_graphs_tell_hidden_states(graphs, name):
    net, rng = model(name), random.Random(3)
    backbone = Backbone(net, compiled=Compiled(static_passes.GRAPHS))
    seqs = [backbone.open(prompt) for prompt in ([1, 2, 3], [4, 5])]
    backbone.follow(seqs[0])
    for _ in range(6):
        backbone.score({seq: random_tree(rng, rng.randrange(4)) for seq in seqs})
        for seq in seqs:
            tree = backbone._tracks[seq].tree
            backbone.commit(seq, [*(tree.path(len(tree) - 1) if len(tree) else []), rng.randrange(20)])
        with torch.inference_mode():
            text = torch.tensor([backbone.tokens(seqs[0])[:-1]])
            want = net.base_model(text, use_cache=False).last_hidden_state[0, -1]
        assert float((backbone.hidden(seqs[0]) - want).abs().max()) < 1e-9
        assert backbone.hidden(seqs[1]) is None
    assert Graph.made == 2  # of lines of one token, and of four


def test_heads_draft_beside_graphs_and_beside_compiled_passes(graphs):
    net, options = network(), {"drafter": random_heads(True), "policy": lambda: Fixed(3)}
    plain = tf.Generator(net, vocabulary(), **options)
    for way, made in ((True, False), ("graphs", True)):
        fast = tf.Generator(net, vocabulary(), compile=way, **options)
        assert tokens(fast) == tokens(plain)
        result = fast.sample(PROMPTS[0], GRAMMAR, seed=2)[0]
        assert "heads" in result.report.sources and not result.report.notes
        assert bool(Graph.made) == bool(shapes(fast)) == made


def test_graphs_that_can_not_be_captured_leave_the_model_as_it_is(graphs, monkeypatch):
    def fails(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(static_passes, "captured", fails)
    net = copy.deepcopy(network())
    plain, fast = (tf.Generator(net, vocabulary(), drafter=None, compile=way) for way in (False, "graphs"))
    with pytest.warns(UserWarning, match='compile="graphs": no CUDA graph can be captured'):
        assert tokens(fast) == tokens(plain)
    assert not shapes(fast)


def test_other_ways_to_compile_are_refused():
    with pytest.raises(errors.OptionError, match='compile is False, True or "graphs"'):
        tf.Generator(network(), vocabulary(), compile="graph")


def test_without_a_gpu_there_are_no_graphs():
    net = copy.deepcopy(network())
    plain, fast = (tf.Generator(net, vocabulary(), compile=way) for way in (False, "graphs"))
    assert tokens(fast) == tokens(plain) and not shapes(fast)
    (result,) = fast.sample(PROMPTS[0], tf.regex("[a-d]{4}"))
    assert 'compile="graphs": there are no CUDA graphs on this device' in result.report.notes


def test_a_model_that_breaks_the_graph_runs_as_it_is_and_says_so_once():
    net = copy.deepcopy(network())
    hook = net.register_forward_hook(lambda *given: float(given[-1].logits.sum()) and None)
    plain, fast = pair(net, drafter=Forced())
    want = tokens(plain)
    with pytest.warns(UserWarning, match="it can't be compiled"):
        assert tokens(fast) == want
    before = compilations()
    again = tf.Generator(net, vocabulary(), drafter=Forced(), compile=True)
    result = again.sample(PROMPTS[0], GRAMMAR, seed=2)[0]
    assert result.tokens == want[0] and "can't be compiled" in result.report.notes[0]
    assert compilations() == before and not shapes(again)
    hook.remove()  # another model, in this respect
    assert tokens(again) == want and shapes(again)


def test_hooks_and_weights_that_change_are_seen():
    net = copy.deepcopy(network())
    plain, fast = pair(net, drafter=None)
    first = tokens(plain)
    assert tokens(fast) == first
    hook = net.lm_head.register_forward_hook(lambda *given: given[-1].flip(-1))
    assert tokens(fast) == tokens(plain) != first
    hook.remove()
    assert tokens(fast) == first
    with torch.no_grad():
        net.lm_head.weight.copy_(net.lm_head.weight.flip(0))
    assert tokens(fast) == tokens(plain) != first


def test_answers_that_differ_are_not_taken(monkeypatch):
    net = copy.deepcopy(network())
    monkeypatch.setattr(
        static_passes, "additive", lambda seen, dtype: torch.zeros_like(seen, dtype=dtype)[:, None]
    )
    plain, fast = pair(net, drafter=Forced())
    with pytest.warns(UserWarning, match="its answers differ"):
        assert tokens(fast) == tokens(plain)
    assert not shapes(fast)
    assert "its answers differ" in fast.sample(PROMPTS[0], GRAMMAR, seed=2)[0].report.notes[0]


def test_memory_that_runs_out_says_nothing_about_the_model(monkeypatch):
    net = copy.deepcopy(network())
    plain, fast = pair(net, drafter=Forced())

    def fails(*_: Any) -> None:
        try:
            raise torch.OutOfMemoryError("no memory")
        except torch.OutOfMemoryError as error:
            raise RuntimeError("the backend failed") from error

    with monkeypatch.context() as patch:
        patch.setattr(static_passes.StaticPasses, "_step", fails)
        (result,) = fast.sample(PROMPTS[0], GRAMMAR, seed=2)
        assert result.tokens == tokens(plain)[0]
        assert result.report.notes == ["compile=True: no memory was left for compiled passes"]
    assert tokens(fast) == tokens(plain) and shapes(fast)


def test_what_the_model_raises_is_told_as_ever():
    net = copy.deepcopy(network())
    writer = tf.Generator(net, vocabulary(), drafter=None, compile=True)
    want = tokens(writer)

    def fails(*_: Any) -> None:
        raise ValueError("a fault of its own")

    hook = net.model.layers[1].register_forward_hook(fails)
    with pytest.raises(errors.ModelError, match="a fault of its own"):
        tokens(writer)
    hook.remove()
    assert tokens(writer) == want


def test_models_with_caches_of_their_own_run_as_they_are():
    torch.manual_seed(0)
    config = hf.MambaConfig(vocab_size=len(TOKENS), hidden_size=16, num_hidden_layers=2, state_size=4)
    net = hf.MambaForCausalLM(config).double().eval()
    plain, fast = pair(net)
    assert tokens(fast) == tokens(plain)
    backbone = Backbone(net, compiled=Compiled("eager"))
    assert "compile=True" in backbone.notes[-1] and "no fixed shape" in backbone.notes[-1]
    split = copy.deepcopy(network())
    split.hf_device_map = {"model.embed_tokens": 0, "model.layers": 1}
    assert "several devices" in Backbone(split, compiled=Compiled("eager")).notes[0]


def test_threads_share_what_is_compiled():
    plain, fast = pair(network(), drafter=None)
    want, got = tokens(plain), {}
    threads = [threading.Thread(target=lambda i=i: got.update({i: tokens(fast)})) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(got[i] == want for i in range(3))


def test_listed_logits_are_no_reason_to_run_as_it_is(monkeypatch):
    from tokenform.decoding.speculative.backbone import head

    monkeypatch.setattr(head, "_SLICED", 1)
    plain, fast = pair(network(), drafter=None)
    assert tokens(fast, logprobs=False) == tokens(plain, logprobs=False) and shapes(fast)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_texts_of_other_backends(backend, monkeypatch):
    monkeypatch.setattr(static_passes, "BACKEND", backend)
    plain, fast = pair(network("qwen3"), drafter=Forced(), policy=lambda: Fixed(3))
    assert tokens(fast, PROMPTS[:2]) == tokens(plain, PROMPTS[:2])
    assert shapes(fast) and not fast.sample(PROMPTS[0], GRAMMAR, seed=2)[0].report.notes


@pytest.fixture
def kept(graphs, monkeypatch):
    monkeypatch.setattr(static_passes, "_PART", 0)  # the model here is smaller than any cache


def test_a_later_call_takes_the_graphs_of_the_call_before(kept):
    plain, fast = (
        tf.Generator(network(), vocabulary(), drafter=None, compile=way) for way in (False, "graphs")
    )
    assert tokens(fast, [[5, 6]]) == tokens(plain, [[5, 6]])
    made = Graph.made
    assert made
    for prompt in ([7, 8], [9] * 30, [5, 6]):
        assert tokens(fast, [prompt]) == tokens(plain, [prompt])
    assert Graph.made == made


def test_graphs_of_other_weights_and_hooks_are_not_taken(kept):
    net = copy.deepcopy(network())
    plain, fast = (tf.Generator(net, vocabulary(), drafter=None, compile=way) for way in (False, "graphs"))
    for change in (
        lambda: net.get_output_embeddings().weight.data.neg_(),
        lambda: setattr(net.lm_head, "weight", torch.nn.Parameter(-net.lm_head.weight.detach())),
        lambda: net.lm_head.register_forward_hook(lambda *args: -args[-1]),
    ):
        assert tokens(fast) == tokens(plain)
        change()
    assert tokens(fast) == tokens(plain)


def test_large_caches_are_not_kept(graphs):
    fast = tf.Generator(network(), vocabulary(), drafter=None, compile="graphs")
    for _ in range(2):
        tokens(fast, [[5, 6]])
        assert not fast._decoders._compiled._idle


def test_threads_have_buffers_of_their_own(kept):
    plain, fast = (
        tf.Generator(network(), vocabulary(), drafter=None, compile=way) for way in (False, "graphs")
    )
    want, found = {n: tokens(plain, [[n, 6]]) for n in range(5, 10)}, {}

    def write(n: int) -> None:
        found[n] = [tokens(fast, [[n, 6]]) for _ in range(3)]

    threads = [threading.Thread(target=write, args=(n,)) for n in want]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == {n: [text] * 3 for n, text in want.items()}
    assert len(fast._decoders._compiled._idle) <= 2


def test_a_prompt_that_runs_as_the_model_is_sets_no_price_of_replays(kept):
    fast = tf.Generator(network(), vocabulary(), compile="graphs")
    tokens(fast, [[5, 6] * 30])
    controller = fast._decoders._controller
    assert controller.prices and max(controller.prices._widths) <= 4  # 16 tokens
    plain = tf.Generator(network(), vocabulary())
    tokens(plain, [[5, 6] * 30])
    assert max(plain._decoders._controller.prices._widths) > 4
