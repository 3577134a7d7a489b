"""Reads a model's configuration: vocabulary, end-of-text tokens, sampling, context."""

from __future__ import annotations

from typing import Any

from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.backbone.facts import text_config
from tokenform.engine import Vocabulary


def read_vocabulary(model: Any, tokenizer: Any) -> Vocabulary:
    """The vocabulary of a model's logits: as wide as they are, with every id that ends its texts."""
    ends: set[int] = set()
    for source in (tokenizer, getattr(model, "generation_config", None), text_config(model)):
        found = getattr(source, "eos_token_id", None)
        ends.update([found] if isinstance(found, int) else found or ())
    size = getattr(text_config(model), "vocab_size", None)
    if size is not None:
        ends = {token for token in ends if 0 <= token < size}
    return Vocabulary.from_tokenizer(tokenizer, size=size, eos=ends or None)


def configured_sampler(config: Any) -> Local:
    """The sampler of a generation_config; greedy where it does not sample."""
    if config is None or not getattr(config, "do_sample", False):
        return Local(temperature=0.0)
    return Local(
        temperature=1.0 if config.temperature is None else config.temperature,
        top_k=config.top_k or None,
        top_p=1.0 if config.top_p is None else config.top_p,
        min_p=getattr(config, "min_p", None) or 0.0,
    )


def context_length(model: Any) -> int | None:
    """Most tokens that the model can hold, where its configuration says so."""
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
        length = getattr(text_config(model), name, None)
        if isinstance(length, int) and length > 0:
            return length
    return None
