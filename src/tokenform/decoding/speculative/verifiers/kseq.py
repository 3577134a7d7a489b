"""k-SEQ: several candidates at each level, drawn independently with repeats.

With beta(rho) = sum_x min(p / rho, q) and rho in [1, k] solving 1 - (1 - beta)^k = rho beta, each of
the k candidates is accepted with min(1, p(x) / (rho q(x))); if none is, the token is drawn from a
law proportional to p - min(q, p / rho) (1 - (1 - beta)^k) / beta.
Then the paths that share the accepted token go on.
Source: Sun et al. 2023 (SpecTr), algorithm 3 and theorem 3.
"""

from __future__ import annotations

import numpy as np

from tokenform.errors import DrafterError

from ..tree import ROOT, DraftTree
from .base import Choice, TargetAtNodes, draft_law, positive, residual


class KSeq:
    """Needs trees of independently drawn paths (`tree.paths`)."""

    drawn = True

    def verify(self, tree: DraftTree, target: TargetAtNodes, choice: Choice) -> list[int]:
        if len(tree) and not tree.paths:
            raise DrafterError("k-SEQ needs independently drawn paths; draft with paths instead of a tree")
        tokens: list[int] = []
        node, depth, paths = ROOT, 0, [p for p in tree.paths if p]
        while paths:
            p, q = target.law(node), draft_law(tree, node)
            rho = solve_rho(p, q, len(paths))
            taken = next(
                (x for x in (path[depth] for path in paths) if self._accepts(tree, x, p, q, rho, choice)),
                None,
            )
            if taken is None:
                tokens.append(choice.draw(residual(rejected_law(p, q, rho, len(paths)), p)))
                return tokens
            tokens.append(tree.tokens[taken])
            node, depth = taken, depth + 1
            paths = [path for path in paths if len(path) > depth and path[depth - 1] == taken]
        tokens.append(choice.draw(target.law(node)))
        return tokens

    @staticmethod
    def _accepts(
        tree: DraftTree, node: int, p: np.ndarray, q: np.ndarray, rho: float, choice: Choice
    ) -> bool:
        x = tree.tokens[node]
        return choice.accept(p[x] / (rho * q[x]))


def solve_rho(p: np.ndarray, q: np.ndarray, k: int) -> float:
    """The rho in [1, k] with 1 - (1 - beta(rho))^k = rho beta(rho), by bisection.

    The upper end is returned: the rule is exact for every rho that is not too small.
    """
    low, high = 1.0, float(k)
    for _ in range(40):
        middle = (low + high) / 2
        beta = float(np.minimum(p / middle, q).sum())
        low, high = (middle, high) if 1 - (1 - beta) ** k > middle * beta else (low, middle)
    return high


def rejected_law(p: np.ndarray, q: np.ndarray, rho: float, k: int) -> np.ndarray:
    """The unnormalised law after k rejections."""
    common = np.minimum(p / rho, q)
    beta = float(common.sum())
    if beta <= 0:
        return p
    return positive(p - common * ((1 - (1 - beta) ** k) / beta))
