"""Hidden states that a backbone tells, heads that draft from them, and the files that hold heads."""

from __future__ import annotations

import copy
import json
import pickle
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import tokenform as tf
from tokenform.decoding.scheduler import Scheduler
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.drafters import Budget, Context, Heads
from tokenform.decoding.speculative.drafters.head_stack import Placed, Stack
from tokenform.decoding.speculative.policies import Fixed
from tokenform.decoding.speculative.request import Request
from tokenform.decoding.speculative.tree import FORCED, DraftTree
from tokenform.errors import DrafterError, ModelError

from .automata import EOS, record, word
from .models import ARCHITECTURES, VOCABULARY, model
from .plain import plain
from .running import decode
from .small_heads import cyclic, follower, heads_of, random_heads, right_heads, stack_of
from .targets import sampler
from .test_backbone import random_tree

FORMS = pytest.mark.parametrize("sequential", [False, True], ids=["medusa", "hydra"])


def state_after(net, tokens: list[int]) -> torch.Tensor:
    """What comes into the output layer behind tokens, by one plain pass."""
    with torch.inference_mode():
        return net.base_model(torch.tensor([tokens]), use_cache=False).last_hidden_state[0, -1]


@pytest.mark.parametrize("mode", ["tree", "chain"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_state_is_that_at_which_the_last_token_was_drawn(name, mode):
    """Over random drafts and commits of a batch, one of which nobody follows."""
    net, rng = model(name), random.Random(5)
    try:
        backbone = Backbone(net, mode)
    except tf.errors.OptionError:
        pytest.skip("it has sliding windows, which can't be cut back")
    seqs = [backbone.open([rng.randrange(VOCABULARY) for _ in range(n)]) for n in (1, 9, 4)]
    known = 0
    for seq in seqs[:2]:
        backbone.follow(seq)
        assert backbone.hidden(seq) is None
    for step in range(8):
        trees = {seq: random_tree(rng, rng.randrange(6)) if step % 3 else DraftTree() for seq in seqs}
        if mode == "chain":
            trees = {seq: DraftTree.chain(tree.tokens) for seq, tree in trees.items()}
        backbone.score(trees)
        for seq, tree in trees.items():
            node = rng.randrange(-1, len(tree))
            path = tree.path(node) if node >= 0 else []
            backbone.commit(seq, [*path, rng.randrange(VOCABULARY)])
            found = backbone.hidden(seq)
            if seq == seqs[2]:
                assert found is None
            elif found is not None:
                known += 1
                want = state_after(net, backbone.tokens(seq)[:-1])
                assert float((found - want).abs().max()) < 1e-9
    assert known == 16  # each pass had a token of each sequence pending
    backbone.truncate(seqs[0], 2)
    assert backbone.hidden(seqs[0]) is None


def test_a_state_whose_token_no_pass_has_drawn_is_not_told():
    backbone = Backbone(model("llama"))
    seq = backbone.open([1, 2, 3])
    backbone.follow(seq)
    backbone.score({seq: DraftTree.chain([4, 5])})
    backbone.commit(seq, [4, 6, 7])  # 6 was drawn at 4, and nobody knows at what 7 was
    assert backbone.hidden(seq) is None
    backbone.score({seq: DraftTree.chain([4, 5])})
    backbone.commit(seq, [4, 5])
    assert backbone.hidden(seq) is not None
    backbone.score({seq: DraftTree.chain([6])})  # its root is known, and not scored again
    backbone.commit(seq, [6, 8])
    assert backbone.hidden(seq) is None


def test_states_are_told_where_few_logits_are_computed():
    net = model("llama", layers=1, vocabulary=16_384)
    backbone = Backbone(net)
    seq = backbone.open([1, 2, 3])
    backbone.follow(seq)
    for _ in range(3):  # the first such pass is run as the model is
        few = [np.array([5, 9]), np.array([5, 9])]
        backbone.score_listed({seq: DraftTree.chain([5])}, {seq: few})
        backbone.commit(seq, [5, 9])
        want = state_after(net, backbone.tokens(seq)[:-1])
        assert float((backbone.hidden(seq) - want).abs().max()) < 1e-9


def requests(automaton=None, count: int = 3, tokens: int = 14, temperature: float = 0.0) -> list[Request]:
    rng = random.Random(count)
    return [
        Request(
            [rng.randrange(1, 12) for _ in range(rng.randrange(1, 20))], sampler(temperature), automaton,
            max_tokens=tokens, eos=frozenset([EOS]), seed=3, number=i,
        )
        for i in range(count)
    ]  # fmt: skip


@FORMS
def test_right_heads_write_five_tokens_a_pass(sequential):
    """Each head says the token that it is for: one place further off, or nearer, nothing were accepted."""
    asked = requests(tokens=40)
    for most, drafter in ((5, right_heads(sequential)), (3, right_heads(sequential, 2))):
        outputs = decode(Backbone(cyclic()), asked, heads_of(drafter, width=1), Fixed(8))
        for request, output in zip(asked, outputs, strict=True):
            want = [follower(request.prompt[-1], n) for n in range(1, 41)]
            assert output.tokens == want == plain(cyclic(), request)
            assert output.report.forwards == 1 + -(-39 // most)  # behind the first, which has no state yet


@FORMS
@pytest.mark.parametrize("mode", ["tree", "chain"])
@pytest.mark.parametrize("kind", ["free", "record", "word"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_texts_are_those_of_plain_decoding(sequential, mode, kind, temperature):
    net = model("llama")
    asked = requests({"free": None, "record": record(), "word": word()}[kind], 4, 14, temperature)
    want = [plain(net, one) for one in asked]
    drafter = random_heads(sequential)
    outputs = decode(Backbone(net, mode), asked, drafter, Fixed(8))
    assert [one.tokens for one in outputs] == want
    assert decode(Backbone(net, mode), asked[1:2], drafter, Fixed(8))[0].tokens == want[1]
    assert all(one.report.sources and not one.report.notes for one in outputs if mode == "tree")


def place(automaton, drafter: Heads, tokens: list[int], state=None) -> tuple[Context, Heads]:
    """A context whose last token was drawn by the cyclic model."""
    net = cyclic()
    seen = SimpleNamespace(
        mode="tree", model=net, device=torch.device("cpu"), follow=lambda seq: None,
        hidden=lambda seq: state_after(net, tokens[:-1]),
    )  # fmt: skip
    state = automaton.start if automaton is not None and state is None else state
    return Context(
        tokens, len(tokens), automaton=automaton, state=state, vocabulary_size=VOCABULARY, backbone=seen
    )


@FORMS
def test_masks_come_before_ranks(sequential):
    """Of a width of one, the best that the constraint allows is drafted, whatever heads say without it."""
    drafter = heads_of(right_heads(sequential), width=1)
    there = place(None, drafter, [3, follower(3)])
    free = drafter.session(there).propose(there, Budget(4))
    assert free.tokens == [follower(3, n) for n in range(2, 6)]
    assert free.sources == ["heads"] * 4
    automaton = word()
    there = place(automaton, drafter, [3, follower(3)])
    tree = drafter.session(there).propose(there, Budget(4))
    assert tree.tokens and tree.tokens[0] != free.tokens[0]
    state = automaton.start
    for node in tree.walk(tree.tokens):
        assert automaton.allows(state, tree.tokens[node])
        state = automaton.advance(state, tree.tokens[node])


@FORMS
def test_drafts_go_on_behind_a_path(sequential):
    """Head i is asked i places behind the text, whoever drafted what is between."""
    drafter = heads_of(right_heads(sequential), width=1)
    there = place(None, drafter, [3, follower(3)])
    below = there.below((follower(3, 2), follower(3, 3)), None)
    session = drafter.session(there)
    assert session.propose(below, Budget(8)).tokens == [follower(3, 4), follower(3, 5)]
    assert session.propose(below, Budget(8, depth=1)).tokens == [follower(3, 4)]
    assert len(session.propose(there.below(tuple(free_tokens(4)), None), Budget(8))) == 0


def free_tokens(count: int) -> list[int]:
    return [follower(3, n) for n in range(2, 2 + count)]


def test_no_head_is_asked_where_the_constraint_forces(monkeypatch):
    tokens = [b"", *(bytes([c]) for c in range(97, 97 + VOCABULARY - 1))]
    vocabulary = tf.Vocabulary(tokens, eos=[0])
    automaton = tf.regex("abcdef").compile(vocabulary)
    drafter = heads_of(right_heads(False), width=2)
    there = place(automaton, drafter, [3, follower(3)])
    monkeypatch.setattr(Placed, "best", lambda *_: pytest.fail("a head was asked"))
    tree = drafter.session(there).propose(there, Budget(8))
    assert tree.tokens == [1, 2, 3, 4] and tree.sources == [FORCED] * 4


def test_the_tree_has_the_likeliest_paths():
    """Against all paths of the heads' own chances, multiplied."""
    torch.manual_seed(6)
    drafter = heads_of(stack_of([(torch.zeros(32, 32), 4 * torch.randn(32)) for _ in range(2)]))
    net, there = cyclic(), place(None, drafter, [3, follower(3)])
    tree = drafter.session(there).propose(there, Budget(6))
    h = state_after(net, [3])[None]
    placed = Placed(drafter.stack, net)
    chances = [torch.softmax(placed.logits(i, placed.states(i, h, []))[0], -1) for i in (0, 1)]
    every = {(int(a),): float(chances[0][a]) for a in range(VOCABULARY)}
    every |= {(*a, b): p * float(chances[1][b]) for a, p in list(every.items()) for b in range(VOCABULARY)}
    best = sorted(every, key=lambda path: -every[path])[:6]
    found = {tuple(tree.path(node)) for node in range(len(tree))}
    assert [every[path] for path in sorted(found, key=lambda path: -every[path])] == pytest.approx(
        [every[path] for path in best]
    )


def test_batches_streams_and_schedulers_write_the_texts_of_plain_decoding():
    plain_writer = tf.Generator(drafter=None)
    size = plain_writer.model.config.hidden_size
    writer = tf.Generator(drafter=random_heads(True, size), policy=lambda: Fixed(8), batch_size=3)
    name = {"type": "string", "maxLength": 12}
    schema = {"type": "object", "properties": {"name": name}, "required": ["name"]}
    prompts = [f"Name: {name}." for name in ("Ada", "Lin", "Maria Rossi", "Bo", "Tom")]
    want = [one.text for (one,) in plain_writer.sample(prompts, schema, max_tokens=40)]
    found = [one for (one,) in writer.sample(prompts, schema, max_tokens=40)]
    assert [one.text for one in found] == want
    assert all("heads" in one.report.sources and not one.report.notes for one in found)
    assert "".join(writer.stream(prompts[2], schema, max_tokens=40)) == want[2]
    with Scheduler(writer, batch_size=2) as scheduler:
        jobs = [scheduler.submit(one, tf.json_schema(schema), max_tokens=40) for one in prompts]
        assert [job.result(60)[0].text for job in jobs] == want


def test_heads_of_another_size_and_models_without_a_state_are_said():
    asked = requests(count=1)
    want = plain(model("llama"), asked[0])
    with pytest.warns(UserWarning, match=r"hidden states of 16 numbers, and LlamaForCausalLM has 32"):
        (output,) = decode(Backbone(model("llama")), asked, random_heads(False, size=16))
    assert output.tokens == want and "DrafterError" in output.report.notes[0]
    bare = copy.deepcopy(model("llama"))
    bare.get_output_embeddings = lambda: None
    backbone = Backbone(bare)
    with pytest.raises(ModelError, match="last hidden state can't be reached"):
        backbone.follow(backbone.open([1]))
    with pytest.warns(UserWarning, match="last hidden state can't be reached"):
        (output,) = decode(backbone, asked, random_heads(False))
    assert output.tokens == want
    with pytest.raises(DrafterError, match="backbone"):
        random_heads(False).session(Context([1], 1, vocabulary_size=VOCABULARY))


def test_a_model_that_changes_its_type_is_followed():
    net, drafter = copy.deepcopy(model("llama")), random_heads(True)
    (asked,) = requests(count=1)
    for kind in (torch.float64, torch.float32):
        backbone = Backbone(net.to(kind))
        (output,) = decode(backbone, [asked], drafter, Fixed(8))
        assert "heads" in output.report.sources and not output.report.notes


def test_heads_that_know_more_tokens_than_the_model_are_refused():
    stack = stack_of([(torch.zeros(32, 32), torch.zeros(32))], tokens=torch.tensor([3, VOCABULARY]))
    with pytest.raises(DrafterError, match="other tokens"):
        Placed(stack, model("llama"))


@pytest.mark.parametrize("suffix", ["safetensors", "pt"])
@pytest.mark.parametrize("layers", [1, 2])
def test_checkpoints_in_the_layout_of_medusa(tmp_path, suffix, layers):
    """Heads with output layers of their own are what the modules that were saved say."""

    class Block(torch.nn.Module):  # as in the code of Cai et al. 2024
        def __init__(self):
            super().__init__()
            self.linear, self.act = torch.nn.Linear(32, 32), torch.nn.SiLU()

        def forward(self, x):
            return x + self.act(self.linear(x))

    torch.manual_seed(1)
    made = torch.nn.ModuleList(
        torch.nn.Sequential(*[Block() for _ in range(layers)], torch.nn.Linear(32, VOCABULARY, bias=False))
        for _ in range(3)
    )
    state = {name: tensor.clone() for name, tensor in made.state_dict().items()}
    assert "2.0.linear.weight" in state and f"2.{layers}.weight" in state
    file = tmp_path / f"medusa_lm_head.{suffix}"
    if suffix == "pt":
        torch.save(state, file)
    else:
        save_file(state, file)
    (tmp_path / "config.json").write_text(json.dumps({"medusa_num_heads": 3, "medusa_num_layers": layers}))
    drafter, net = Heads(tmp_path), model("llama")
    placed, h = Placed(drafter.stack, net), torch.randn(1, 32, dtype=torch.float64)
    for head, module in enumerate(made.double()):
        want = module(h).detach()
        assert float((placed.logits(head, placed.states(head, h, [])) - want).abs().max()) < 1e-5
    asked = requests()
    outputs = decode(Backbone(net), asked, drafter, Fixed(8))
    assert [one.tokens for one in outputs] == [plain(net, one) for one in asked]
    assert all("heads" in one.report.sources for one in outputs)


@FORMS
def test_what_is_written_is_read(tmp_path, sequential):
    torch.manual_seed(3)
    blocks = [(torch.randn(4, 8 if sequential else 4), torch.randn(4)) for _ in range(2)]
    more = {"0.projection.weight": torch.randn(4, 4), "1.1.weight": torch.randn(3, 4)}
    stack = stack_of(blocks, sequential, tokens=torch.tensor([1, 5, 9]), **more)
    stack.model = "a model"
    stack.write(tmp_path / "new")
    again = Stack.read(tmp_path / "new")
    assert (again.sequential, again.model, again.count, again.size) == (sequential, "a model", 2, 4)
    assert again.weights.keys() == stack.weights.keys()
    for name, tensor in stack.weights.items():
        want = tensor.half() if tensor.is_floating_point() else tensor
        assert torch.equal(again.weights[name], want)


def test_folders_that_hold_no_heads_are_refused(tmp_path):
    with pytest.raises(DrafterError, match="has no heads"):
        Heads(tmp_path)
    file = tmp_path / "medusa_lm_head.safetensors"
    for tensors, why in (
        ({"0.0.linear.weight": torch.zeros(4, 4)}, "lacks a block"),
        ({"lm_head.weight": torch.zeros(4, 4)}, "no part of a head"),
        ({"0.1.weight": torch.zeros(4, 4)}, "lacks a block"),
        (
            {"0.0.linear.weight": torch.zeros(4, 5), "0.0.linear.bias": torch.zeros(4)},
            "lacks a block 0 of weights",
        ),
    ):
        save_file(tensors, file)
        with pytest.raises(DrafterError, match=why):
            Heads(tmp_path)
    file.write_bytes(b"nothing")
    with pytest.raises(DrafterError, match="can't be read"):
        Heads(tmp_path)
    file.unlink()
    (tmp_path / "medusa_lm_head.pt").write_bytes(pickle.dumps({"0.0.linear.weight": print}))
    with pytest.raises(DrafterError, match="can't be read"):
        Heads(tmp_path)
