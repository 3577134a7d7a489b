"""Names that were removed because they did not pay: their replacement, with the figure.

The figures are of `python benchmarks/zoo.py --quick` (`benchmarks/results/zoo-builtin-quick.json`): CPU
milliseconds a token under schemas, where plain decoding has 4.8; see `docs/papers.md`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tokenform.errors import OptionError

_RULE = "drafts are verified by sample-and-match, which is exact for any drafter; leave it out"
_DRAWN = f"{_RULE} and let DraftModel(model) draft with the sampler's own draws"
_LAYERS = (
    "it had 5.70 tokens a pass, and more time a token than plain decoding (SmolLM2-135M: 127 ms for 101); "
    "take DraftModel(model) with a smaller model, or 'auto'"
)
_POLICY = "Fixed scores more of each draft in less time; the default, Controller, scores what pays"

REMOVED = {
    "Lookahead": "it had 1.39 tokens a pass, in no less time than plain decoding; take Recycling() or 'auto'",
    "LayerSkip": _LAYERS,
    "search_skip_set": _LAYERS,
    "Input": "Suffix(remember=False) copies the prompt as well as the text (4.14 tokens a pass, Input 3.99)",
    "Confidence": _POLICY,
    "Cumulative": _POLICY,
    "cut=": "each step of MCMC writes the text anew; other cuts were 0.09 and 0.33 off where that is 0.06",
    "resampling=": "where there are masks SMC keeps the best of all next prefixes (two stated errors of log Z"
    " held in 91 runs of 100, resampling's in 57); where tokens are tested it resamples systematically",
    "verifier=": _RULE,
    "shape=": "DraftModel drafts with the sampler's own draws, which are accepted more often; leave it out",
    "SampleAndMatch": _RULE,
    "GreedyTree": _RULE,
    "TokenRule": f"{_DRAWN}: 9.3 ms a token for 5.7",
    "BlockRule": f"{_DRAWN}: 9.3 ms a token for 5.7",
    "KSeq": f"{_DRAWN}: 12.7 ms a token for 5.7",
    "BestPath": f"{_DRAWN}: 11.6 ms a token for 5.7",
    "Recursive": f"{_DRAWN}: 8.3 ms a token for 5.7, with fewer tokens a pass",
    "Traversal": f"{_DRAWN}: 8.5 ms a token for 5.7, with fewer tokens a pass",
}
"""By name: why it is gone and what to take."""


def refuse(module: str, name: str) -> NoReturn:
    """Raises a module's error for a name that it does not have."""
    reason = f"; {REMOVED[name]}." if name in REMOVED else ""
    raise AttributeError(f"module {module!r} has no attribute {name!r}{reason}")


def check(**options: Any) -> None:
    """Refuses options that were removed (OptionError)."""
    for name, value in options.items():
        if value is not None:
            raise OptionError(f"{name}= is gone: {REMOVED[name + '=']}.")
