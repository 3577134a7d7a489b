"""Requests that are run to their ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.policies import Policy
from tokenform.decoding.speculative.request import Output, Request
from tokenform.decoding.speculative.speculator import Speculator


def decode(
    backbone: Backbone,
    requests: Iterable[Request],
    drafter: Any = None,
    policy: Policy | None = None,
) -> list[Output]:
    """Writes all texts in one ragged batch.

    Returns:
        One output a request, in their order; a sequence that failed has `error`.
    """
    speculator = Speculator(backbone, drafter, policy)
    try:
        outputs = [speculator.output(speculator.add(request)) for request in requests]
        while speculator.active:
            speculator.step()
    finally:
        speculator.close()
    return outputs
