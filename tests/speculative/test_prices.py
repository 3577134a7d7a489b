"""Prices of passes, and drafts that have to pay for themselves: worlds of a known law instead of a model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest
from benchmarks.suites.replay import replay
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenform.decoding.speculative.drafters import Suffix
from tokenform.decoding.speculative.policies import Account, Controller, Prices, chances
from tokenform.decoding.speculative.policies.account import FIRST, LATER, RATE
from tokenform.decoding.speculative.tree import FORCED, DraftTree

# seconds of a pass by its tokens
WORLDS: dict[str, Callable[[float], float]] = {
    "step": lambda n: 0.061 if n <= 1 else 0.107 + 0.004 * n,
    "linear": lambda n: 0.002 + 0.010 * n,
    "flat": lambda n: 0.020 + 1e-5 * n,
    "late step": lambda n: 0.020 if n <= 4 else 0.090,
}


class Told(Prices):
    """A table that somebody who knows has written."""

    def __init__(self, law: Callable[[float], float]) -> None:
        super().__init__()
        self.law = law

    def __bool__(self) -> bool:
        return True

    def known(self, tokens: float) -> bool:
        return True

    def each(self, sizes: Iterable[float], lines: int = 1, beside: int = 0) -> list[float]:
        return super().each(sizes, lines, beside) if beside else [self.law(tokens) for tokens in sizes]


def knowing(world: str, drafting: float = 0.0) -> Controller:
    controller = Controller()
    controller.prices = Told(WORLDS[world])
    controller.drafted.add(drafting)
    return controller


def trees(most: int) -> st.SearchStrategy[DraftTree]:
    node = st.tuples(st.floats(0.01, 1.0), st.integers(-1, most))
    return st.lists(node, max_size=most).map(grown)


def grown(nodes: list[tuple[float, int]]) -> DraftTree:
    tree = DraftTree()
    for i, (confidence, parent) in enumerate(nodes):
        tree.add(min(parent, i - 1), i, "test", confidence)
    return tree


def parts(tree: DraftTree) -> Iterator[list[int]]:
    """All sets of nodes that hold each node's parent."""
    for bits in range(1 << len(tree)):
        part = [node for node in range(len(tree)) if bits >> node & 1]
        if all(tree.parents[node] < 0 or bits >> tree.parents[node] & 1 for node in part):
            yield part


@pytest.mark.parametrize("world", list(WORLDS))
@given(tree=trees(7), drafting=st.sampled_from([0.0, 0.004]))
def test_of_all_parts_of_a_tree_the_one_with_the_most_tokens_a_second_is_scored(world, tree, drafting):
    kept = knowing(world, drafting).shape([tree])[0]
    chance, spent = chances(tree), drafting if len(tree) else 0.0

    def rate(part: list[int]) -> float:
        return (1 + sum(chance[node] for node in part)) / (WORLDS[world](1 + len(part)) + spent)

    got = rate([node for node, one in enumerate(kept) if one])
    assert got == pytest.approx(max(rate(part) for part in parts(tree)), rel=1e-9)
    for node, one in enumerate(kept):
        assert not one or tree.parents[node] < 0 or kept[tree.parents[node]]


@pytest.mark.parametrize("world", list(WORLDS))
def test_no_more_is_asked_for_than_could_pay_or_be_paid(world):
    controller, law = knowing(world), WORLDS[world]
    most = controller.budget(1).nodes
    assert (most == 0) == all(law(1 + n) - law(1) >= n * law(1) for n in (1, 3, 7, 15, 31, 48))
    poor = Account()
    poor.step(law(1), 1.5 * law(1))
    assert controller.budget(1, poor).nodes == 0 or law(2) == law(1)


class Text:
    """A text of `length` tokens whose drafter proposes chains.

    Args:
        law: seconds of a pass.
        right: at token n, how many tokens of a chain come true.
        stated: the confidence of each.
        drafting: seconds of a draft.
    """

    def __init__(
        self, law: Callable[[float], float], right: Callable[[int], int], stated: float, drafting: float = 0.0
    ) -> None:
        self.law, self.right, self.stated, self.drafting = law, right, stated, drafting

    def cost(self, controller: Controller, length: int, chain: int = 16) -> float:
        """Seconds that it takes."""
        account, at, seconds = Account(), 0, 0.0
        while at < length:
            nodes = min(controller.budget(1, account).nodes, chain, length - at - 1)
            drafting = self.drafting if nodes else 1e-5
            guessed = [at + i if i < self.right(at) else -1 for i in range(nodes)]  # token n of the text is n
            tree = DraftTree.chain(guessed, FORCED, self.stated)
            kept = sum(controller.shape([tree], 1.0, [account])[0])
            controller.observe(1 + kept, self.law(1 + kept), drafting)
            seconds += self.law(1 + kept) + drafting
            wrote = 1 + min(kept, self.right(at))
            account.wrote(range(at, at + wrote))
            at += wrote
        return seconds


TRACES: dict[str, Callable[[int], int]] = {
    "never": lambda at: 0,
    "at first": lambda at: 16 if at < 40 else 0,
    "at last": lambda at: 16 if at > 300 else 0,
    "one of a chain": lambda at: 1,
    "every third": lambda at: 2 * (at % 3 == 0),
    "by chance": lambda at: int(np.random.default_rng(at).integers(0, 4)),
}


@pytest.mark.parametrize("world", list(WORLDS))
@pytest.mark.parametrize("trace", list(TRACES))
@pytest.mark.parametrize("drafting", [0.0, 0.003])
def test_a_text_costs_hardly_more_than_plain_decoding_whatever_is_foretold(world, trace, drafting):
    """The drafter says that it is sure, at every token, whatever comes of it."""
    law, controller = WORLDS[world], Controller()
    text = Text(law, TRACES[trace], 0.99, drafting)
    for number, length in enumerate((400, 40, 80, 400)):
        plain = length * (law(1) + 1e-5)
        # in the first text, each width is also run once to be measured
        surprises = 0.0 if number else sum(law(2**n) for n in range(1, 6))
        assert text.cost(controller, length) <= 1.03 * plain + 1.5 * law(1) + surprises + 3 * drafting


@pytest.mark.parametrize("world", ["step", "flat", "late step"])
def test_where_guesses_come_true_nearly_all_that_can_be_spared_is(world):
    law, controller = WORLDS[world], Controller()
    text = Text(law, lambda at: 16, 0.97)
    text.cost(controller, 100)
    width = min(range(1, 18), key=lambda n: law(n) / n)
    assert text.cost(controller, 200) <= 1.3 * 200 * law(width) / width
    # after a text that nothing came of, too
    Text(law, TRACES["never"], 0.97).cost(controller, 400)
    assert text.cost(controller, 200) <= 1.3 * 200 * law(width) / width


@pytest.mark.parametrize("world", list(WORLDS))
@pytest.mark.parametrize("trace", list(TRACES))
@settings(deadline=None, max_examples=15)
@given(length=st.integers(1, 200), stated=st.floats(0.3, 0.89))
def test_a_guess_that_is_not_sure_is_paid_by_what_such_guesses_would_have_saved(world, trace, length, stated):
    """So a short text, too, takes next to nothing more than plain decoding."""
    law = WORLDS[world]
    text = Text(law, TRACES[trace], stated)
    assert text.cost(knowing(world), length) <= (1 + RATE + LATER) * length * (law(1) + 1e-5) + 1e-9


def test_what_comes_true_without_being_scored_is_scored_soon():
    law = WORLDS["step"]
    plain, copies = Text(law, TRACES["never"], 0.6), Text(law, lambda at: 16, 0.6)
    assert plain.cost(knowing("step"), 80) == pytest.approx(80 * law(1), rel=1e-3)  # nothing was scored
    assert copies.cost(knowing("step"), 80) < 0.75 * 80 * law(1)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.lists(st.integers(0, 3), max_size=6))
def test_a_guess_that_is_not_scored_is_judged_by_the_text(guessed, text):
    """As if it had been scored: the tokens that it would have saved, less its price."""
    account, share = Account(), 0.05
    account.foretold = 0.5
    account.step(share, 0.0)
    account.foretell(DraftTree.chain(guessed), [True] * len(guessed), 0.2 * share)
    for token in text:
        account.wrote([token])
    right = next((i for i, (a, b) in enumerate(zip(guessed, text, strict=False)) if a != b), None)
    if right is None and len(text) < len(guessed):
        assert account.foretold == 0.5  # not known yet
    else:
        right = len(guessed) if right is None else right
        assert account.foretold == pytest.approx(min(max(0.5 + right - 0.2, 0.0), FIRST))


def test_a_text_that_pays_late_is_tried_again():
    law, controller = WORLDS["step"], Controller()
    text = Text(law, TRACES["at last"], 0.97)
    text.cost(controller, 100)
    assert text.cost(controller, 1000) < 0.6 * 1000 * law(1)


@pytest.mark.parametrize("world", list(WORLDS))
@given(st.lists(st.integers(1, 64), min_size=2, max_size=5), st.integers(0, 300))
def test_what_a_prompt_costs_is_left_out(world, sizes, beside):
    law = WORLDS[world]
    prices = Told(law).each(sizes, 1, beside)
    wanted = [law(1) + law(beside + size) - law(beside + 1) for size in sizes]
    assert prices == pytest.approx(wanted if beside else [law(size) for size in sizes])


def test_beside_a_prompt_a_first_draft_costs_little():
    """A text of its own account: nothing but the nodes' own price is booked, and a text that may end at once
    pays for none."""
    law = WORLDS["step"]
    short = Account()
    short.begins(99)
    assert knowing("step").budget(1, short).nodes == 0
    for beside, dearest in ((0, 0.6), (99, 0.2)):
        controller, account = knowing("step"), Account(least=16)
        account.begins(beside)
        assert controller.budget(1, account).nodes > 0
        kept = controller.shape([DraftTree.chain([1, 2, 3], FORCED, 0.9)], 1.0, [account])[0]
        more = account.spent - law(1)
        assert sum(kept) == 3 and more == pytest.approx(law(beside + 4) - law(beside + 1))
        assert (more < dearest * law(1)) == (beside > 0)


def test_in_a_batch_those_who_draft_pay():
    controller, paying, other = knowing("step"), Account(), Account()
    for account in (paying, other):
        account.step(0.05, 0.0)
        account.wrote([1] * 60)
        assert controller.budget(2, account).nodes > 0
    long, none = DraftTree.chain([1] * 8, FORCED, 0.9), DraftTree()
    before = [paying.spent, other.spent]
    kept = controller.shape([long, none], 1.0, [paying, other])
    size = 2 * (1 + sum(kept[0]))
    spent = [paying.spent - before[0], other.spent - before[1]]
    assert sum(kept[0]) > 0 and sum(spent) == pytest.approx(WORLDS["step"](size))
    assert spent[0] > spent[1] == pytest.approx(WORLDS["step"](2) / 2)


@pytest.mark.parametrize("world", list(WORLDS))
def test_a_table_is_learnt_on_a_busy_machine(world):
    law, prices, rng = WORLDS[world], Prices(), np.random.default_rng(1)
    assert not prices and prices.of(1) < prices.of(2)
    for _ in range(400):
        width = int(2 ** rng.integers(0, 6))
        late = 20.0 if rng.random() < 0.1 else 1.0 + 0.02 * rng.random()
        prices.observe(width, late * law(width))
    for width in (1, 2, 4, 8, 16, 32):
        assert 0.99 * law(width) <= prices.of(width) <= 1.04 * law(width)
    asked = [prices.of(n / 4) for n in range(1, 400)]
    assert all(0 < low <= high for low, high in itertools.pairwise(asked))


def test_a_width_that_was_dear_once_is_tried_again():
    prices = Prices()
    for _ in range(3):
        prices.observe(1, 0.010)
        prices.observe(2, 0.500)
    assert prices.of(2) == pytest.approx(0.5) and prices.known(2)
    prices.observe(7, 0.020)  # more can't cost less: the two were a busy moment
    assert prices.of(2) == pytest.approx(0.020)
    for _ in range(600):
        prices.observe(1, 0.010)
    assert not prices.known(2) and prices.of(2) < 0.011


def test_nothing_is_drafted_before_a_pass_without_drafts_is_measured():
    controller = Controller()
    assert [controller.budget(1).nodes for _ in range(2)] == [0, 0]
    assert controller.budget(1).nodes > 0  # nobody can tell the time: beliefs must do
    measured = Controller()
    for _ in range(2):
        assert measured.budget(1).nodes == 0
        measured.observe(1, 0.01)
    assert measured.budget(1).nodes > 0


def test_a_pass_for_a_draft_is_spent_only_where_a_token_is_worth_it():
    controller = Controller()
    for _ in range(40):
        controller.observe(4, 0.010)
        controller.shape([DraftTree.chain([1], confidence=1.0)])  # two tokens a step: 5 ms each
    assert 0.004 < controller.worth() < 0.006
    controller.observe(1, 0.009)
    controller.observe(1, 0.009)
    stop = controller.budget(1).stop
    assert not stop(1.0, 1.0, 0.001) and stop(1.0, 1.0, 0.008) and stop(0.001, 0.001, 0.0)
    below = controller.budget(1).after(0.1, 8, 8).stop
    assert below(1.0, 1.0, 0.001) and not below(1.0, 1.0, 0.0001)


def test_a_batch_is_shaped_by_columns():
    """A line that is longer than the others makes all of them as long."""
    controller = Controller()
    for tokens in [8, 16, 32, 64, 128] * 10:
        controller.observe(tokens, 0.010 + 0.0001 * tokens)
    long, none = DraftTree.chain(range(20), confidence=0.95), DraftTree()
    alone = sum(controller.shape([long])[0])
    one = controller.shape([long] + [none] * 31)
    every = controller.shape([long] * 32)
    assert alone == 20 and sum(one[0]) == 0
    width = sum(every[0])
    assert all(kept == every[0] for kept in every) and 0 < width < 20
    price = controller.prices.of
    bound = 1.6 * price(32, 32)
    assert price(32 * (1 + width), 32) <= bound < price(32 * (2 + width), 32)
    # where the head costs nearly all, lines may be long, and each node is worth its own price or left out
    mixed = controller.shape([long] * 4 + [DraftTree.chain(range(3), confidence=0.01)] * 4, padding=0.05)
    assert sum(mixed[0]) > 5 and not any(map(any, mixed[4:]))


def test_an_account_without_a_clock_stops_nothing():
    controller, account = Controller(), Account()
    for _ in range(50):
        controller.budget(1, account)
        controller.shape([DraftTree.chain([1], FORCED, 0.9)], 1.0, [account])
        account.wrote([1])
    assert controller.budget(1, account).nodes > 0 and math.isfinite(account.spent)


def test_a_drafter_that_seemed_too_dear_for_any_text_is_asked_again():
    controller = knowing("step", drafting=10.0)
    asked = [controller.budget(1, Account()).nodes > 0 for _ in range(800)]
    assert not asked[0] and asked[-1]


def test_a_replayed_text_has_an_account():
    """The figures of `benchmarks/free_text.py`: a text that copies nothing costs what plain decoding does."""
    law = WORLDS["step"]
    for text, least, most in ((range(3, 203), 1.0, 1.0), ([5, 6, 7, 8] * 50, 0.0, 0.6)):
        report = replay(list(text), Suffix(), 300, policy=knowing("step"), price=law)
        assert least - 1e-9 <= report.seconds_model / (200 * law(1)) <= most + 1e-9
        assert (report.forwards < 200) == (most < 1)
