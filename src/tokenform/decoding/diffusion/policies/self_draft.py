"""Another policy's passes, several of them checked in one.

Law: that of the other policy, pass by pass: the same texts from the same seed.  The canvases of the next
passes are guessed by assuming that the logits stay the same; the model reads these canvases together, and the
logits of one count if the passes before lead to exactly that canvas.
Source: SSD (Gao et al., 2025, "Self speculative decoding for diffusion large language models") and FreeDave
(Wu, Zhang, 2025, "Free draft-and-verification"), of which this is the chain of drafts without a tree.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenform.decoding.calls import check_counts
from tokenform.decoding.diffusion.policies.base import FillPolicy, FillStep
from tokenform.decoding.diffusion.policies.confidence import Confidence


class SelfDraft:
    """Args:
    within: the policy whose passes are drafted.
    drafts: canvases that a pass reads beside the current one.
    Not for models that read the logits of the pass before (DiffusionGemma).
    """

    def __init__(self, within: FillPolicy | None = None, drafts: int = 4) -> None:
        check_counts(drafts=drafts)
        self.within, self.drafts = Confidence() if within is None else within, drafts

    @property
    def blind(self) -> bool:
        return getattr(self.within, "blind", False)

    def choose(self, step: FillStep) -> Sequence[int]:
        return self.within.choose(step)
