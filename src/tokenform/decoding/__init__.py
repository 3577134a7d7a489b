"""Writing texts with a model under constraints: prompts, the loop, samplers, results."""

from __future__ import annotations

from tokenform.errors import extras

with extras():
    from tokenform.decoding.generator import Generator
    from tokenform.decoding.reason import Reason
    from tokenform.decoding.results import Estimates, Result, Stats
    from tokenform.decoding.samplers import Local

__all__ = ["Estimates", "Generator", "Local", "Reason", "Result", "Stats"]
