"""Adaptive weighted rejection sampling: texts without masks, each with a proper weight.

Each step draws from f restricted to the valid tokens by testing a few of them (`rejection_step`), and the
product of the steps' unbiased mass estimates is the importance weight: E[w·1(text = x)] = f(x)·1[x ∈ L].
A trie records refused tokens and the mass that each prefix has left, and later walks draw ∝ f·θ as those of
ASAp do: a refused token is never tested again, and a prefix with little accepted mass comes less often.
Weights stay proper, because each is that of its own walk given those before.

Distribution of an unweighted draw: that of local masking at first, then nearer to the target.
Source: Lipkin et al. 2025, whose sampler forgets everything between texts: on ten cities under SmolLM2-135M
(`benchmarks/zoo.py --parts samplers`), of which "Paris" is three quarters of the target and a ten-thousandth
of what local masking draws, 200 of its weighted draws are 0.77 off, and its log Z is 1.8 too low with no
error known (masks instead of tests: 1.6); its estimator is right, so few draws of such weights are not.
"""

from __future__ import annotations

from typing_extensions import Unpack

from tokenform.decoding.aligned import rejection_step
from tokenform.decoding.aligned.asap import ASAp
from tokenform.decoding.aligned.rejection_step import Estimator
from tokenform.decoding.aligned.sampler import Common


class AWRS(ASAp):
    """Adaptive weighted rejection: draws without masks, by testing a few tokens a step, with a weight.

    For constraints with an expensive check (`tf.predicate`). Means weighted by exp(`log_weight`) are those of
    the model's distribution; a refused token is not tested again. Source: Lipkin et al. 2025.

    Example:
        >>> len(tf.generate("A word.", regex="[a-z]{2}", max_tokens=4, sampler=tf.AWRS()).text)
        2

    Args:
        estimator: "auto", "two_loops", "recursive" or "geometric" (see `rejection_step`).
        accepts: m of the geometric estimator.
        always_reject: test tokens one by one even where the constraint has exact masks.
        **common: the options that all samplers take (temperature, top_k, top_p, min_p, power, potential,
            batch_size, fast_forward, canonical); see `AlignedSampler`.
    """

    takes_potential, bounded = True, False

    def __init__(
        self,
        estimator: Estimator = "auto",
        *,
        accepts: int = 2,
        always_reject: bool = False,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(explore=0, **common)
        self.step, self.restricted = rejection_step.estimator(estimator, accepts), not always_reject
