"""Local masking, step by step and in batches: the control that faithful samplers are held against.

Each token is drawn from f restricted to its mask.  A text's probability is Π f(a|u)/Z_u over its steps, so
that its importance weight towards the target is w = Π Z_u: sequential Monte Carlo with one particle.
"""

from __future__ import annotations

from typing_extensions import Unpack

from tokenform.decoding.aligned.sampler import Common
from tokenform.decoding.aligned.smc import SMC


class Masked(SMC):
    """Local masking, token by token, with an importance weight for each draw.

    As fast as `Local`, and means weighted by exp(`log_weight`) are those of the model's distribution under
    the constraint.  Temperature and truncation act before the mask.

    Example:
        >>> tf.generate("It is paid.", choices=["paid", "new"], seed=0, sampler=tf.samplers.Masked()).text
        'paid'

    Args:
        **common: the options that all samplers take (temperature, top_k, top_p, min_p, power, potential,
            batch_size, fast_forward, canonical); see `AlignedSampler`.
    """

    def __init__(self, **common: Unpack[Common]) -> None:
        super().__init__(1, weights="mask", **common)
