"""Which backbone serves a model exactly.

Purpose: look at the model's configuration, and then *try*: a small tree is scored both
ways on the model itself, and a model whose answers differ is not given trees.
Invariant: mode "tree" is chosen only if a tree forward equals per-path forwards.
Complexity: three forward passes of six tokens, once a model.
Rejected: a list of known architectures (it ages, and remote code is on none).
"""

from __future__ import annotations

import threading
import warnings
import weakref
from typing import Any

import torch

from tokenform.decoding.model_cache import cache_name
from tokenform.errors import ModelError, OptionError

from ..tree import ROOT, DraftTree
from .masks import layer_windows

_RECURRENT = ("mamba", "linear", "recurrent", "conv", "ssm", "rwkv")
_MASKABLE = ("eager", "sdpa", None)
_lock = threading.Lock()
_tried: weakref.WeakKeyDictionary[Any, tuple[str, str]] = weakref.WeakKeyDictionary()


def backbone_class(model: Any, mode: str | None) -> tuple[type, str, list[str]]:
    """(class, mode, notes) for a model; `mode` is what the caller insists on, or None.

    Raises:
        ModelError: no causal language model, or an encoder-decoder model.
        OptionError: the mode does not exist, or the model can't be served in it.
    """
    from .serial import SerialBackbone
    from .trees import TreeBackbone

    if mode not in (None, "tree", "chain", "plain"):
        raise OptionError(f"mode is 'tree', 'chain', 'plain' or None, not {mode!r}")
    config = getattr(model, "config", None)
    if config is None or not hasattr(model, "forward"):
        raise ModelError(
            f"{type(model).__name__} is no Hugging Face causal language model: it has no config or forward"
        )
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            f"{type(model).__name__} is an encoder-decoder model; the backbone runs decoder-only models."
            " Use the logits processor with the model's own generate instead"
        )
    best, why = _best(model, mode)
    rank = ("plain", "chain", "tree")
    if mode is not None and rank.index(mode) > rank.index(best):
        raise OptionError(f"{type(model).__name__} can't be served in mode {mode!r}: {why}")
    chosen = mode or best
    return (
        (TreeBackbone if chosen == "tree" else SerialBackbone),
        chosen,
        [why] if why and best != "tree" else [],
    )


def _best(model: Any, mode: str | None) -> tuple[str, str]:
    if model in _tried:
        return _tried[model]
    best, why = _by_config(model)
    if best == "tree" and mode in (None, "tree"):
        try:
            with _lock:
                problem = "" if model in _tried else _trial(model)
        except (
            torch.OutOfMemoryError,
            MemoryError,
        ):  # says nothing about the model: it is tried again next time
            return _chains(model, "no memory was left to try draft trees on it")
        if model in _tried:  # by another thread meanwhile
            return _tried[model]
        if problem:
            best, why = _chains(model, problem)
        _tried[model] = best, why
        if why:
            warnings.warn(f"{type(model).__name__}: {why}", stacklevel=4)
    return best, why


def _by_config(model: Any) -> tuple[str, str]:
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    names = {
        *(getattr(config, "layer_types", None) or ()),
        *(getattr(config, "layers_block_type", None) or ()),
    }
    recurrent = next((n for n in sorted(names) if any(r in str(n) for r in _RECURRENT)), None)
    if recurrent or getattr(model, "_is_stateful", False):
        return (
            "plain",
            f"it keeps a recurrent state ({recurrent or model.config.model_type}): decoding is plain",
        )
    if cache_name(model) is None:
        return "plain", "its forward takes no cache of keys and values: decoding is plain"
    if any("chunked" in str(n) for n in names):
        return "plain", "its attention is chunked, and its cache can't be cut back: decoding is plain"
    kernel = getattr(config, "_attn_implementation", None)
    if kernel not in _MASKABLE:
        return _chains(model, f"its attention ({kernel}) takes no custom mask")
    return "tree", ""


def _chains(model: Any, why: str) -> tuple[str, str]:
    """What is left to a model that trees can't serve: the model's own cache, cut back after a draft, which a
    sliding window makes impossible (it has forgotten what comes back into view).
    """
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    if any(window is not None for window in layer_windows(config).values()):
        return "plain", f"{why}, and its sliding window can't be cut back: decoding is plain"
    return "chain", f"{why}: drafts are chains, one sequence at a time"


def _trial(model: Any) -> str:
    """Scores a tree and its paths on the model; says what differs, or ""."""
    from .serial import SerialBackbone
    from .trees import TreeBackbone

    v = (
        int(model.config.get_text_config().vocab_size)
        if hasattr(model.config, "get_text_config")
        else int(model.config.vocab_size)
    )
    prompt, first, second, third = [1 % v, 3 % v, 2 % v], 5 % v, 4 % v, 6 % v
    tree = DraftTree()
    tree.add_path(ROOT, [first, second])
    tree.add_path(ROOT, [third, first])
    if len(tree) < 3:
        return ""
    training = model.training
    model.eval()
    try:
        trees = TreeBackbone.untried(model, "tree")
        seq, beside = trees.open(prompt), trees.open(prompt[::-1])  # another line, which is padded
        got = trees.score({seq: tree, beside: DraftTree()})[seq]
        serial = SerialBackbone.untried(model, "chain")
        for node in range(len(tree)):
            if not tree.children(node):
                other = serial.open(prompt)
                path = tree.path(node)
                want = serial.score({other: DraftTree.chain(path)})[other]
                rows = [0, *(n + 1 for n in tree.walk(path))]
                problem = _differ(got[rows], want)
                if problem:
                    return problem
    except torch.OutOfMemoryError:
        raise
    except (
        TypeError,
        ValueError,
        RuntimeError,
        AttributeError,
        KeyError,
        IndexError,
        NotImplementedError,
    ) as error:
        return f"a tree forward fails ({type(error).__name__}: {str(error)[:80]})"
    finally:
        model.train(training)
    return ""


def _differ(got: torch.Tensor, want: torch.Tensor) -> str:
    """A wrong mask moves logits by a good part of their spread, rounding does not.

    Eager attention takes its softmax in float32 whatever the model's type, hence one bound.
    """
    error = float((got.double() - want.double()).abs().max())
    spread = float(want.double().std()) + 1e-30
    bound = 1e-3 if got.dtype in (torch.float32, torch.float64) else 0.1
    if not error <= bound * max(spread, 1e-3):
        return f"a tree forward differs from per-path forwards by {error:.1e}"
    return ""
