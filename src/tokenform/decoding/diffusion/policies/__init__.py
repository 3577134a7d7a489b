"""Which positions of a canvas are committed after a pass: a policy a file."""

from __future__ import annotations

from tokenform.decoding.diffusion.policies.adaptive_parallel import AdaptiveParallel
from tokenform.decoding.diffusion.policies.base import FillPolicy, FillStep
from tokenform.decoding.diffusion.policies.blocks import Blocks
from tokenform.decoding.diffusion.policies.confidence import Confidence
from tokenform.decoding.diffusion.policies.credit import Credit
from tokenform.decoding.diffusion.policies.early_answer import EarlyAnswer
from tokenform.decoding.diffusion.policies.entropy_bound import EntropyBound
from tokenform.decoding.diffusion.policies.left_to_right import LeftToRight
from tokenform.decoding.diffusion.policies.local_determinism import LocalDeterminism
from tokenform.decoding.diffusion.policies.self_draft import SelfDraft
from tokenform.decoding.diffusion.policies.threshold import Threshold

__all__ = [
    "AdaptiveParallel",
    "Blocks",
    "Confidence",
    "Credit",
    "EarlyAnswer",
    "EntropyBound",
    "FillPolicy",
    "FillStep",
    "LeftToRight",
    "LocalDeterminism",
    "SelfDraft",
    "Threshold",
]
