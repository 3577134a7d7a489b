"""Adaptive weighted rejection sampling: one sequence at a time, no masks, with a proper weight.

Each step draws from f restricted to the valid tokens by testing a few of them (`rejection_step`), and the
product of the steps' unbiased mass estimates is the importance weight: E[w·1(text = x)] = f(x)·1[x ∈ L].  It
is SMC with one particle; with several, resampled against each other, use `SMC(weights="rejection")`.

Distribution of an unweighted draw: that of local masking.  The weights carry the correction.
"""

from __future__ import annotations

from typing_extensions import Unpack

from tokenform.decoding.aligned.rejection_step import Estimator
from tokenform.decoding.aligned.sampler import Common
from tokenform.decoding.aligned.smc import SMC


class AWRS(SMC):
    """Adaptive weighted rejection: draws without masks, by testing a few tokens a step, with a weight.

    For constraints whose check is dear (`tf.predicate`).  Means weighted by exp(`log_weight`) are those of
    the model's distribution.  Source: Lipkin et al. 2025.

    Example:
        >>> len(tf.generate("A word.", regex="[a-z]{2}", max_tokens=4, sampler=tf.AWRS()).text)
        2

    Args:
        estimator: "auto", "two_loops", "recursive" or "geometric" (see `rejection_step`).
        accepts: m of the geometric estimator.
        always_reject: test tokens one by one even where the constraint has exact masks.
        until_error, max_runs, max_attempts: as for SMC.
        **common: the options that all samplers take (temperature, top_k, top_p, min_p, power, potential,
            batch_size, fast_forward, canonical); see `AlignedSampler`.
    """

    def __init__(
        self,
        estimator: Estimator = "auto",
        *,
        accepts: int = 2,
        always_reject: bool = False,
        **common: Unpack[Common],
    ) -> None:
        weights = "rejection" if always_reject else "auto"
        super().__init__(1, threshold=0.0, weights=weights, estimator=estimator, accepts=accepts, **common)
