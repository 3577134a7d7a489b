"""Adaptive weighted rejection sampling: one sequence at a time, no masks, with a proper weight.

Each step draws from f restricted to the valid tokens by testing a few of them (`rejection_step`), and the
product of the steps' unbiased mass estimates is the importance weight: E[w·1(text = x)] = f(x)·1[x ∈ L].  It
is SMC with one particle; with several, resampled against each other, use `SMC(weights="rejection")`.

Law of an unweighted draw: that of local masking.  The weights carry the correction.
"""

from __future__ import annotations

from tokenform.decoding.aligned.rejection_step import Estimator
from tokenform.decoding.aligned.smc import SMC


class AWRS(SMC):
    """See the module's header.

    Args:
        estimator: "auto", "two_loops", "recursive" or "geometric" (see `rejection_step`).
        accepts: m of the geometric estimator.
        always_reject: test tokens one by one even where the constraint has exact masks.
        until_error, max_runs, max_attempts: as for SMC.
    """

    def __init__(
        self,
        estimator: Estimator = "auto",
        *,
        accepts: int = 2,
        always_reject: bool = False,
        **common: object,
    ) -> None:
        weights = "rejection" if always_reject else "auto"
        super().__init__(1, threshold=0.0, weights=weights, estimator=estimator, accepts=accepts, **common)  # type: ignore[arg-type]
