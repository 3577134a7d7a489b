"""k-SEQ: several candidates at each level, drawn independently with repeats.

With beta(rho) = sum_x min(p / rho, q) and rho in [1, k] solving 1 - (1 - beta)^k = rho beta, each of
the k candidates is accepted with min(1, p(x) / (rho q(x))); if none is, the token is drawn from a
distribution proportional to p - min(q, p / rho) (1 - (1 - beta)^k) / beta.
Then the paths that share the accepted token go on.
Complexity: rho by 40 halvings of O(V) at each node that has children.
Source: Sun et al. 2023 (SpecTr), algorithm 3 and theorem 3.
"""

from __future__ import annotations

import torch

from ..tree import ROOT, DraftTree
from .base import Choice, Coins, DrawnRule, Weights, normalised
from .forest import Forest


class KSeq(DrawnRule):
    """Needs trees of independently drawn paths (`tree.paths`)."""

    needs_paths = True

    def weigh(self, forest: Forest, p: torch.Tensor, q: torch.Tensor) -> Weights:
        final, through = p.clone(), forest.numbers(forest.paths_through()).double()
        chance = torch.ones(forest.rows, dtype=torch.float64, device=p.device)
        bound = torch.ones_like(chance)
        for rows, distributions, siblings in forest.levels():
            here, drawn, paths = p[rows], q[distributions], through[rows]
            rho = solve_rho(here, drawn, paths)
            final[rows] = normalised(rejected_distribution(here, drawn, rho, paths), here)
            bound[rows] = rho
            for parents, children, tokens, of in siblings:
                ratio = p[parents, tokens] / (bound[parents] * q[of, tokens])
                chance[children] = ratio.clamp(max=1.0)
        return Weights(chance, final, torch.zeros_like(chance))

    def stop(self, tree: DraftTree, coins: Coins, choice: Choice) -> int:
        node, depth, paths = ROOT, 0, [path for path in tree.paths if path]
        while paths:
            tried = (path[depth] for path in paths)
            taken = next((kid for kid in tried if choice.accept(coins.chance[kid + 1])), None)
            if taken is None:
                break
            node, depth = taken, depth + 1
            paths = [path for path in paths if len(path) > depth and path[depth - 1] == taken]
        return node


def solve_rho(p: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """The rho in [1, k] with 1 - (1 - beta(rho))^k = rho beta(rho), by bisection; float64 [n].

    The upper end is returned: the rule is exact for every rho that is not too small.
    """
    low, high = torch.ones_like(k), k.clone()
    for _ in range(40):
        middle = (low + high) / 2
        beta = torch.minimum(p / middle[:, None], q).sum(-1)
        above = 1 - (1 - beta) ** k > middle * beta
        low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    return high


def rejected_distribution(
    p: torch.Tensor, q: torch.Tensor, rho: torch.Tensor, k: torch.Tensor
) -> torch.Tensor:
    """The unnormalised distribution after k rejections, float64 [n, V]."""
    common = torch.minimum(p / rho[:, None], q)
    beta = common.sum(-1, keepdim=True)
    share = torch.where(beta > 0, (1 - (1 - beta) ** k[:, None]) / beta, 0.0)
    return (p - common * share).clamp_(min=0.0)
