"""A token that stays a position's choice over several passes counts more.

Law: a position's credit for its token is `decay` times what it was, and the token's probability more;
another token begins anew.  With credit c, a token of probability p counts as p w / (p w + 1 - p), with
w = (1 + c) ** gain; every open position that then has at least so much probability is committed.
Source: CreditDecoding (Wang et al., 2025), which adds the credit to the logits of all tokens; here it is that
of the token that would be committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.decoding.diffusion.policies.base import FillStep
from tokenform.errors import OptionError


class Credit:
    """Args:
    least: probability from which a token is committed.
    decay: what is left of a credit after a pass.
    gain: what credit is worth.
    """

    def __init__(self, least: float = 0.9, decay: float = 0.65, gain: float = 1.0) -> None:
        if not 0 <= least <= 1 or not 0 <= decay <= 1 or not gain >= 0:
            raise OptionError("least and decay lie between 0 and 1, and gain is at least 0.")
        self.least, self.decay, self.gain = least, decay, gain
        self._credits: dict[int, tuple[int, float]] = {}

    def choose(self, step: FillStep) -> Sequence[int]:
        before, self._credits = self._credits, {}
        chosen = []
        for at, token, sure in zip(step.open, step.tokens, step.confidence, strict=True):
            known, credit = before.get(at, (token, 0.0))
            credit = credit if known == token else 0.0
            weight = (1 + credit) ** self.gain
            if sure * weight >= self.least * (sure * weight + 1 - sure):
                chosen.append(at)
            self._credits[at] = int(token), self.decay * credit + float(sure)
        return chosen
