"""What each drafter proposes, and that none changes a text."""

from __future__ import annotations

import copy
import functools
import tracemalloc

import numpy as np
import pytest
import torch
from benchmarks.suites.replay import replay

import tokenform as tf
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.drafters import (
    Budget,
    Context,
    DraftModel,
    Forced,
    Hints,
    Merge,
    Names,
    NGram,
    Nothing,
    Recycling,
    Suffix,
    VocabularyMap,
    auto,
    property_names,
)
from tokenform.decoding.speculative.drafters.base import Seen
from tokenform.decoding.speculative.drafters.suffix import SEPARATOR, SuffixAutomaton, copied
from tokenform.decoding.speculative.policies import Controller, Fixed
from tokenform.decoding.speculative.request import Request
from tokenform.decoding.speculative.tree import DraftTree
from tokenform.errors import DrafterError, OptionError

from .automata import EOS, Patterned, record, vocabulary, word
from .models import VOCABULARY, model
from .plain import plain
from .running import decode
from .targets import sampler

GREEDY, WARM = sampler(0.0), sampler(0.8)


def context(tokens: list[int], **more) -> Context:
    return Context(tokens=tokens, prompt_length=len(tokens), vocabulary_size=VOCABULARY, **more)


def first(drafter, tokens: list[int], nodes: int = 32, **more) -> DraftTree:
    there = context(tokens, **more)
    return drafter.session(there).propose(there, Budget(nodes))


def test_ngram_copies_what_followed_the_longest_match():
    tree = first(NGram(tokens=3, places=2), [1, 2, 3, 9, 9, 2, 3, 4, 5, 6, 2, 3])
    assert tree.path(tree.walk([4, 5, 6])[-1]) == [4, 5, 6]
    assert tree.walk([9, 9, 2])
    assert len(first(NGram(), [1, 2, 3])) == 0


def test_a_copy_goes_on_with_itself_where_the_text_ends():
    """What repeats is foretold further than its period; against the copy made token by token."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        text = rng.integers(0, 9, rng.integers(1, 12)).tolist()
        path = rng.integers(0, 9, rng.integers(0, 6)).tolist()
        start, most = int(rng.integers(0, len(text) + 1)), int(rng.integers(0, 30))
        whole = text + path
        for i in range(most if start < len(whole) else 0):
            whole.append(whole[start + i])
        assert copied(text, path, start, most) == whole[len(text) + len(path) :]
    for drafter in (Suffix(), NGram()):
        tree = first(drafter, [7, 1, 2, 1, 2, 1], nodes=9)
        assert tree.path(tree.walk([2, 1] * 4)[-1]) == [2, 1] * 4


def test_suffix_automaton_finds_the_longest_earlier_suffix():
    rng = np.random.default_rng(0)
    for _ in range(30):
        text = rng.integers(0, 3, 40).tolist()
        automaton = SuffixAutomaton(text)
        want = max(
            (n for n in range(len(text)) if any(text[i : i + n] == text[-n:] for i in range(len(text) - n))),
            default=0,
        )
        state, matched = automaton.before()
        assert matched == want
        end = automaton.end[state]
        assert matched == 0 or (text[end - matched : end] == text[-matched:] and end < len(text))


def test_suffix_drafts_from_the_text_the_drafted_path_and_the_datastore():
    assert first(Suffix(), [5, 6, 7, 8, 9, 5, 6]).path(2) == [7, 8, 9]
    there = context([1, 2, 3, 4])
    session = Suffix(datastore=[[3, 4, 5, 6], [9, 8]]).session(there)
    assert session.propose(there, Budget(9)).path(1) == [5, 6]
    assert session.propose(there.below((5,), None), Budget(9)).tokens == [6]


def test_suffix_remembers_finished_outputs():
    drafter = Suffix(remember=True)
    there = context([1])
    session = drafter.session(there)
    there.tokens += [30, 31, 32, 33]
    session.observe(there, Seen([30, 31, 32, 33], DraftTree(), torch.zeros(1, VOCABULARY)))
    session.close()
    assert first(drafter, [2, 30, 31]).path(1) == [32, 33]


def test_forced_drafts_the_span_and_siblings_at_its_end():
    auto_, tokens = record(), vocabulary()
    span = auto_.forced(auto_.start)
    tree = first(Forced(), [7], automaton=auto_, state=auto_.start)
    assert [tree.tokens[n] for n in tree.walk(span)] == span
    spelled = {b"".join(tokens[t] for t in tree.path(n)) for n in range(len(tree))}
    assert all(b'{"name":"'.startswith(s) for s in spelled)
    assert len(first(Forced(), [7])) == 0
    state = auto_.start
    for token in [*span, *(tokens.index(b"a") for _ in range(6))]:
        state = auto_.advance(state, token)
    tree = first(Forced(), [7], automaton=auto_, state=state)
    last = tree.walk(auto_.forced(state))[-1]
    assert tokens[tree.tokens[last]] == b'":'
    assert {tokens[tree.tokens[n]] for n in tree.children(tree.parents[last])} == {b'":', b'"'}


def test_forced_follows_small_choices_and_learns_longer_tokens():
    tokens = vocabulary()
    automaton = Patterned([b"{", (frozenset(b"an"), 1), b'":', (frozenset(b"xyz123"), 9)])
    tree = first(Forced(), [7], automaton=automaton, state=automaton.start)
    spelled = {b"".join(tokens[t] for t in tree.path(n)) for n in range(len(tree))}
    assert b'{a":' in spelled and b'{n":' in spelled
    drafter = Forced(choices=0)
    there = context([7], automaton=record(), state=None)
    there.state = there.automaton.start
    session = drafter.session(there)
    session.propose(there, Budget(32))
    session.ends[()] = b"n"
    session.observe(there, Seen([tokens.index(b"name")], DraftTree(), torch.zeros(1, VOCABULARY)))
    assert drafter.seen[b"n"] == {tokens.index(b"name"): 1}


@pytest.mark.parametrize("pattern", ["ab*", "(ab)*", "x{1000000}"])
def test_forced_ends_where_the_text_may_end_or_goes_on_for_ever(pattern):
    letters = [bytes([byte]) for byte in range(256)]
    automaton = tf.regex(pattern).compile(tf.Vocabulary([*letters, b""], eos=[256]))
    tree = first(Forced(), [ord("!")], nodes=8192, automaton=automaton, state=automaton.start)
    assert 0 < len(tree) <= 5000


def test_names_are_drafted_where_one_has_begun_and_fits():
    tokens = vocabulary()
    schema = {"properties": {"name": {}, "age": {"properties": {"zz": {}}}}}
    names = property_names(schema)
    assert names == [b'"name":', b'"age":', b'"zz":']
    hints = Hints(names=names)
    keys = Patterned([b'{"', (frozenset(b"namegz"), 4), b'":1}'])
    state = keys.advance(keys.start, tokens.index(b'{"'))
    tree = first(Names(), [tokens.index(b'{"')], automaton=keys, state=state, hints=hints)
    spelled = {b"".join(tokens[t] for t in tree.path(n)) for n in range(len(tree))}
    assert {b'name":', b'age":', b'zz":'} <= spelled
    value = Patterned([b'{"', (frozenset(b"namegz"), 4), b'"}'])  # a string in which no name can end
    state = value.advance(value.start, tokens.index(b'{"'))
    assert len(first(Names(), [tokens.index(b'{"')], automaton=value, state=state, hints=hints)) == 0


def test_replay_counts_as_a_model_that_writes_the_text_would():
    automaton, tokens = record(), vocabulary()
    text = [tokens.index(b) for b in (b'{"', b"name", b'":', b'"', b"a", b'","', b"age", b'":', b"12", b"}")]
    report = replay(text, Merge(Forced(), Suffix()), len(tokens), automaton, eos=frozenset([EOS]))
    assert report.tokens == len(text) == report.forwards + report.accepted + 0
    assert report.forwards < 6
    plain_ = replay(text, Nothing(), len(tokens), automaton)
    assert plain_.forwards == len(text)


def test_recycling_proposes_the_last_best_successors():
    drafter = Recycling(width=2, nodes=6)
    there = context([4, 5])
    session = drafter.session(there)
    logits = torch.zeros(1, VOCABULARY)
    logits[0, 7], logits[0, 8] = 3.0, 2.0
    there.tokens.append(9)
    session.observe(there, Seen([9], DraftTree(), logits))
    there.tokens.append(5)
    assert session.propose(there, Budget(8)).tokens == [7, 8]


def test_the_old_name_of_suffix_warns_and_goes_on_over_an_edit():
    prompt = list(range(10, 40))
    there = context(list(prompt))
    session = Suffix(remember=False).session(there)
    for token in [10, 11, 12, 50, 14, 15]:
        there.tokens.append(token)
        session.observe(there, Seen([token], DraftTree(), torch.zeros(1, VOCABULARY)))
    assert session.propose(there, Budget(3)).tokens == [16, 17, 18]  # over the edit


def test_the_pair_that_load_draft_gives_is_a_draft_model():
    net = model("llama")
    assert DraftModel((net, None)).backbone(None).model is net


def test_a_model_that_drafts_for_itself_is_always_right():
    net = model("llama")
    request = Request([1, 2, 3], sampler(1.3), max_tokens=28, seed=5)
    output = decode(Backbone(net), [request], DraftModel(net, tokens=6))[0]
    assert output.report.tokens_per_forward == 7.0
    assert output.tokens == plain(net, request)


@pytest.mark.parametrize("constrained", [False, True])
def test_guessing_for_the_draft_model_saves_passes_and_changes_no_draft(constrained):
    """The draws of a pass that was guessed right are those of one pass a token."""
    net = copy.deepcopy(model("llama", seed=1, layers=1))
    with torch.no_grad():  # it looks at the last token alone, so that it repeats itself
        net.model.layers[0].self_attn.o_proj.weight.zero_()
    automaton = record() if constrained else None
    start, ends = (automaton.start, frozenset([EOS])) if automaton is not None else (None, frozenset())

    def drafts(guessing: bool):
        drafter = DraftModel(net, tokens=16, siblings=2)
        here = context([5, 6, 7, 8] * 6, sampler=GREEDY, automaton=automaton, state=start, eos=ends)
        session, found = drafter.session(here), []
        if not guessing:
            session.foresight = None
        for _ in range(3):  # each goes on with what the cache has of the one before
            tree = session.propose(here, Budget(48))
            found.append((tree.tokens, tree.parents, np.round(tree.confidences, 9).tolist()))
            taken = tree.path(len(tree) - 1)[:5]
            here.tokens.extend(taken)
            here.state = None if automaton is None else functools.reduce(automaton.advance, taken, here.state)
        session.close()
        assert drafter.sequences == 0
        return found, drafter.forwards

    (quick, few), (slow, many) = drafts(True), drafts(False)
    assert quick == slow and few < many


def other_vocabulary(retokenise: bool) -> VocabularyMap:
    """The test vocabulary in another order, some of its pieces missing."""
    tokens = vocabulary()
    draft = tokens[::-1]
    draft[5] = b""
    return VocabularyMap(tokens, draft, retokenise)


EVERY = {
    "nothing": Nothing,
    "ngram": NGram,
    "suffix": Suffix,
    "forced": lambda: Forced(),
    "recycling": Recycling,
    "model": lambda: DraftModel(model("llama", seed=1, layers=1), tokens=4),
    "shared": lambda: DraftModel(
        model("gpt2", seed=1, layers=1), tokens=3, vocabulary=other_vocabulary(False)
    ),
    "retokenised": lambda: DraftModel(
        model("gpt2", seed=1, layers=1), tokens=3, vocabulary=other_vocabulary(True)
    ),
    "auto": lambda: auto(),
    "all": lambda: Merge(Forced(), Suffix(), Recycling()),
}


@functools.cache
def case(name: str, kind: str) -> tuple[list[Request], list[list[int]]]:
    """Two requests and their plain texts."""
    automaton = {"free": None, "record": record(), "word": word()}[kind]
    asked = [
        Request(p, WARM, automaton, max_tokens=12, eos=frozenset([EOS]), seed=1, number=i)
        for i, p in enumerate(([5, 6, 5, 6, 5], [1, 2, 3]))
    ]
    return asked, [plain(model(name), r) for r in asked]


@pytest.mark.parametrize("drafter", list(EVERY))
@pytest.mark.parametrize("kind", ["free", "record", "word"])
def test_no_drafter_changes_a_text(drafter, kind):
    """Drawn texts, as the controller drafts; greedy ones are those of `test_matrix.py`."""
    asked, want = case("qwen3", kind)
    got = decode(Backbone(model("qwen3")), asked, EVERY[drafter](), policy=Controller())
    assert [o.tokens for o in got] == want


def test_what_is_gone_says_what_to_take():
    from tokenform.decoding.speculative import drafters, policies, verifiers

    for module, name in ((drafters, "Lookahead"), (policies, "Cumulative"), (verifiers, "TokenRule")):
        with pytest.raises(AttributeError, match=f"{name}.*(take|Fixed|DraftModel)"):
            getattr(module, name)
    with pytest.raises(OptionError, match="shape= is gone"):
        DraftModel(model("llama"), shape=2)


def test_two_drafters_of_one_name_are_refused():
    with pytest.raises(DrafterError, match="one name"):
        Merge(NGram(), NGram())


def test_a_source_that_does_not_pay_is_asked_ever_less():
    class Wrong(Nothing):
        name = "wrong"
        asked = 0

        def session(self, there):
            return self

        def propose(self, there, budget):
            Wrong.asked += 1
            return DraftTree.chain([57], "wrong", 0.9)

        def observe(self, *_):
            return None

        def close(self):
            return None

    net = model("llama")
    output = decode(Backbone(net), [Request([1], sampler(0.0, [57]), max_tokens=200)], Wrong())[0]
    assert 57 not in output.tokens
    assert Wrong.asked < 100


@pytest.mark.parametrize("nodes", [0, 1, 8])
def test_a_text_is_remembered_to_its_end(nodes):
    """The step that ends it gives its last tokens: all of them, where a draft was right."""
    writer = tf.Generator(drafter=Suffix(), policy=lambda: Fixed(nodes))
    for _ in range(3):
        written = writer.generate("Maria Rossi has paid.", choices=["Maria Rossi has paid.", "Maria"])
    held = writer.drafter.store.text
    assert held == 3 * [*written.tokens, SEPARATOR]


def test_what_a_datastore_forgets_makes_no_pause():
    """The automaton that stays was built meanwhile, and is that of the last texts."""
    drafter, rng = Suffix(keep=200), np.random.default_rng(0)
    texts = [rng.integers(0, 9, 12).tolist() for _ in range(200)]
    for number, text in enumerate(texts):
        drafter.add(text)
        held = drafter.store.text
        assert len(held) <= 2 * (200 + 13) and (len(held) >= 200 or number < 20)
        every = [token for one in texts[: number + 1] for token in [*one, SEPARATOR]]
        assert held == every[len(every) - len(held) :]
    built = SuffixAutomaton(drafter.store.text)
    assert (built.next, built.link, built.end) == (
        drafter.store.next,
        drafter.store.link,
        drafter.store.end,
    )


def test_a_pass_tells_its_padding():
    backbone = Backbone(model("llama"))
    head = sum(one.numel() for one in backbone.model.get_output_embeddings().parameters())
    assert 0 < backbone.padding < 1 and head > 0
    seqs = [backbone.open([1, 2, 3]), backbone.open([4, 5, 6])]
    trees = {seqs[0]: DraftTree.chain([1, 2, 3, 4, 5, 6]), seqs[1]: DraftTree()}
    backbone.score(trees)
    before = backbone.counters.positions, backbone.counters.scored
    for seq in seqs:
        backbone.commit(seq, [7])
    backbone.score(trees)
    assert backbone.counters.positions - before[0] == 14
    assert backbone.counters.scored - before[1] == 8


def test_names_cost_no_more_than_they_take():
    tokens = vocabulary()
    long = b'"' + b"n" * 20_000 + b'":'
    alike = [b'"' + b"n" * 200 + b"%d" % number + b'":' for number in range(2_000)]
    keys = Patterned([b'{"', (frozenset(b"n"), 4), b'":1}'])
    state = keys.advance(keys.start, tokens.index(b'{"'))
    tracemalloc.start()
    hints = Hints(names=[long, *alike, b'"nan":', b'"nn":'])
    tree = first(Names(), [tokens.index(b'{"')], automaton=keys, state=state, hints=hints)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
    assert b'nn":' in {b"".join(tokens[t] for t in tree.path(n)) for n in range(len(tree))}
