"""The best of K independently drawn paths, then block verification.

At each node tokens are ordered by p / q, ascending; of the K paths the lexicographically
largest is kept.  With c the mass (under q) of all paths below the prefix's range and m the mass
of the prefix, and c_x = c + m x (mass of the tokens before x), the distribution with which the kept path goes
on is q'(x | prefix) = [(c_x + m q(x))^K - c_x^K] / [(c + m)^K - c^K], the maximum of K uniform draws
falling into x's share of the prefix's interval.  Block verification with q' for q is then exact.
Source: the construction agrees with "Greedy multi-path block verification" (2025); K = 1 is
block verification.
Rejected: ordering by q (accepts less than one path alone on some distributions).
"""

from __future__ import annotations

import torch

from ..tree import ROOT, DraftTree
from .base import Choice, Coins, DrawnRule, Weights, normalised
from .forest import Forest


class BestPath(DrawnRule):
    """Needs trees of independently drawn paths of one length (`tree.paths`)."""

    needs_paths = True

    def weigh(self, forest: Forest, p: torch.Tensor, q: torch.Tensor) -> Weights:
        final, roots = p.clone(), forest.roots
        count = forest.numbers([len(tree.paths) for tree in forest.trees for _ in range(len(tree) + 1)])
        one = torch.ones(forest.rows, dtype=torch.float64, device=p.device)
        chance, held, below, mass, lean = one.clone(), one.clone(), 0 * one, one.clone(), 0 * one
        for rows, distributions, siblings in forest.levels():
            here, drawn = p[rows], q[distributions]
            start = mass_before(here, drawn)
            best = largest_distribution(below[rows], mass[rows], start, drawn, count[rows].double())
            left = (held[rows, None] * here - best).clamp_(min=0.0)
            total = left.sum(1)
            final[rows] = normalised(left, here)
            share = torch.where(total > 0, total / (total + 1 - held[rows]), 0.0)
            chance[rows] = torch.where(roots[rows], 1.0, share)
            place = torch.empty(forest.rows, dtype=torch.long, device=p.device)
            place[rows] = torch.arange(len(rows), device=p.device)
            for parents, children, tokens, _ in siblings:
                at = place[parents]
                lean[children] = here[at, tokens] / drawn[at, tokens]
                below[children] = below[parents] + mass[parents] * start[at, tokens]
                mass[children] = mass[parents] * drawn[at, tokens]
                ratio = held[parents] * here[at, tokens] / best[at, tokens]
                held[children] = chance[children] = ratio.clamp(max=1.0)
        return Weights(chance, final, lean)

    def stop(self, tree: DraftTree, coins: Coins, choice: Choice) -> int:
        path: list[int] = []
        while kids := tree.children(path[-1] if path else ROOT):
            path.append(max(kids, key=lambda kid: (coins.lean[kid + 1], tree.tokens[kid])))
        fallen = (node for node in reversed(path) if choice.accept(coins.chance[node + 1]))
        return next(fallen, ROOT)


def mass_before(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """The mass under q of the tokens that come before each, by p / q ascending, then by id; [n, V].

    Tokens that are never drawn come first.
    """
    order = torch.where(q > 0, p / q, -1.0).argsort(dim=-1, stable=True)
    ranked = q.gather(1, order)
    before = torch.cat([ranked.new_zeros(len(q), 1), ranked.cumsum(1)[:, :-1]], 1)
    return torch.empty_like(q).scatter_(1, order, before)


def largest_distribution(
    below: torch.Tensor, mass: torch.Tensor, start: torch.Tensor, q: torch.Tensor, count: torch.Tensor
) -> torch.Tensor:
    """q'(. | prefix), float64 [n, V], each row sums to one."""
    low, power = below[:, None] + mass[:, None] * start, count[:, None]
    distribution = ((low + mass[:, None] * q) ** power - low**power).masked_fill_(q <= 0, 0.0)
    return normalised(distribution, q)
