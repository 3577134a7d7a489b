"""Which backbone serves a model exactly, and whether it may be given rows of unequal lengths.

Purpose: read the model's configuration, and then *try*: a small tree is scored both ways on the model itself,
and a model whose answers differ gets no trees.  Rows that run together are padded, under a mask.  A recurrent
state may read padding as text, and a custom attention kernel may ignore the mask: that is tried, too.
Invariant: mode "tree" is chosen only if a tree forward equals per-path forwards; rows are padded only if the
model's answers are those of unpadded rows.
Complexity: three forward passes of six tokens, once a model; a few of at most four, once a model, where rows
of unequal lengths meet.
Rejected: a list of known architectures (it ages, and remote code is on none).
"""

from __future__ import annotations

import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any

import torch

from tokenform.errors import ModelError, OptionError

from ..tree import ROOT, DraftTree
from .base import Backbone
from .facts import FAILURES, cache_name, differ, text_config
from .packing import layer_windows

if TYPE_CHECKING:
    from .rows import RowBackbone

_RECURRENT = ("mamba", "linear", "recurrent", "conv", "ssm", "rwkv")
_MASKABLE = ("eager", "sdpa", None)
_lock = threading.Lock()
_trial_results: weakref.WeakKeyDictionary[Any, tuple[str, str]] = weakref.WeakKeyDictionary()
_padding_results: weakref.WeakKeyDictionary[Any, dict[str, bool]] = weakref.WeakKeyDictionary()


def check_model(model: Any) -> None:
    """Refuses what no backbone can run.

    Raises:
        ModelError
    """
    if not callable(model):
        raise ModelError(f"{type(model).__name__} is not a model; pass a causal language model.")
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        raise ModelError(
            f"{type(model).__name__} is an encoder-decoder model; the backbone runs decoder-only models."
            " Use the logits processor with the model's own generate instead"
        )


def backbone_class(model: Any, mode: str | None) -> tuple[type[Backbone], str, list[str]]:
    """(class, mode, notes) for a model; `mode` is what the caller insists on, or None.

    Raises:
        ModelError: no causal language model, or an encoder-decoder model.
        OptionError: the mode does not exist, or the model can't be served in it.
    """
    from .rows import RowBackbone
    from .trees import TreeBackbone

    if mode not in (None, "tree", "chain", "plain"):
        raise OptionError(f"mode is 'tree', 'chain', 'plain' or None, not {mode!r}")
    check_model(model)
    if None in [getattr(model, name, None) for name in ("config", "forward", "parameters")]:
        best, why = "plain", "it is only called like a model, and has no config: decoding is plain"
    else:
        best, why = _best(model, mode)
    rank = ("plain", "chain", "tree")
    if mode is not None and rank.index(mode) > rank.index(best):
        raise OptionError(f"{type(model).__name__} can't be served in mode {mode!r}: {why}")
    chosen = mode or best
    return TreeBackbone if chosen == "tree" else RowBackbone, chosen, [why] if why and best != "tree" else []


def _best(model: Any, mode: str | None) -> tuple[str, str]:
    if model in _trial_results:
        return _trial_results[model]
    best, why = _by_config(model)
    if best == "tree" and mode in (None, "tree"):
        try:
            with _lock:
                problem = "" if model in _trial_results else _trial(model)
        except (
            torch.OutOfMemoryError,
            MemoryError,
        ):  # says nothing about the model: it is tried again next time
            return _chains(model, "no memory was left to try draft trees on it")
        if model in _trial_results:  # by another thread meanwhile
            return _trial_results[model]
        if problem:
            best, why = _chains(model, problem)
        _trial_results[model] = best, why
        if why:
            warnings.warn(f"{type(model).__name__}: {why}", stacklevel=4)
    return best, why


def _by_config(model: Any) -> tuple[str, str]:
    config = text_config(model)
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
    """The mode of a model that trees can't serve: the model's own cache, cut back after a draft.  A sliding
    window makes that impossible (it has dropped tokens that come back into view).
    """
    config = text_config(model)
    if any(window is not None for window in layer_windows(config).values()):
        return "plain", f"{why}, and its sliding window can't be cut back: decoding is plain"
    return "chain", f"{why}: drafts are chains"


def _trial(model: Any) -> str:
    """Scores a tree and its paths on the model; says what differs, or ""."""
    from .rows import RowBackbone
    from .trees import TreeBackbone

    v = int(text_config(model).vocab_size)
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
        alone = RowBackbone.untried(model, "chain")
        for node in range(len(tree)):
            if not tree.children(node):
                other = alone.open(prompt)
                path = tree.path(node)
                want = alone.score({other: DraftTree.chain(path)})[other]
                rows = [0, *(n + 1 for n in tree.walk(path))]
                error = differ(got[rows], want)
                if error:
                    return f"a tree forward differs from per-path forwards by {error}"
    except torch.OutOfMemoryError:
        raise
    except FAILURES as error:
        return f"a tree forward fails ({type(error).__name__}: {str(error)[:80]})"
    finally:
        model.train(training)
    return ""


def takes_padding(backbone: RowBackbone) -> bool:
    """Whether padded rows have the answers of rows alone, in the backbone's mode.

    Raises:
        OutOfMemoryError, MemoryError: there was none left to try.
    """
    try:
        known = _padding_results.setdefault(backbone.model, {})
    except TypeError:  # something that can't be referred to weakly
        known = {}
    if backbone.mode not in known:
        try:
            answers = [_answers(backbone, padded) for padded in (True, False)]
            known[backbone.mode] = all(not differ(got, want) for got, want in zip(*answers, strict=True))
        except torch.OutOfMemoryError:
            raise
        except FAILURES:
            known[backbone.mode] = False
    return known[backbone.mode]


def _answers(backbone: RowBackbone, padded: bool) -> list[torch.Tensor]:
    """Logits of two texts over three steps; where drafts are possible, with some that are rejected."""
    copy = type(backbone).untried(backbone.model, backbone.mode, size=backbone.vocabulary_size)
    copy.padded = padded
    size = backbone.vocabulary_size
    seqs = [copy.open([token % size for token in text]) for text in ([1, 3, 2], [5])]
    drafts: list[list[int]] = (
        [[4 % size], [6 % size, 1 % size, 2 % size]] if backbone.mode == "chain" else [[], []]
    )
    out: list[torch.Tensor] = []
    rounds: list[list[list[int]]] = [drafts, drafts[::-1], [[], []]]
    for draft in rounds:
        out += copy.score({seq: DraftTree.chain(own) for seq, own in zip(seqs, draft, strict=True)}).values()
        for seq in seqs:
            copy.commit(seq, [6 % size])
    return out
