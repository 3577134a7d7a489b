"""The backbone behind `model.generate(...)` of transformers: its arguments, this library's loop.

Purpose: `model.generate(**inputs, custom_generate=custom_generate(grammar, tokenizer))` writes under a
constraint, with drafts, and gives ids as `generate` does.
Invariant: temperature, top-k, top-p and min-p of the generation config come after the mask, every other
logits processor before it; options that the loop does not have are refused, not ignored.
Rejected: passing the truncating processors on (before a mask they may leave no allowed token).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tokenform.engine import Vocabulary
from tokenform.errors import OptionError, extras

with extras():
    import torch

    from tokenform.decoding.configuration import configured_sampler, read_vocabulary
    from tokenform.decoding.draws import Transform
    from tokenform.decoding.generator import Generator

_SAMPLER_WARPERS = {"TemperatureLogitsWarper", "TopKLogitsWarper", "TopPLogitsWarper", "MinPLogitsWarper"}
_STOPS = {"MaxLengthCriteria", "EosTokenCriteria"}


def custom_generate(
    grammar: Any, tokenizer: Any, *, drafter: Any = "auto", seed: int | None = None
) -> Callable[..., torch.Tensor]:
    """A decoding method for `model.generate(custom_generate=...)`.

    Args:
        grammar: a grammar, schema or type; or a list with one for each prompt of the batch.
        tokenizer: the model's tokenizer, or a `Vocabulary` as wide as its logits.
        drafter: as for `Generator`.
        seed: key of the draws; None draws one from torch's own generator.
    Returns:
        A function (model, input_ids [B, L], ...) -> ids [B, L + longest text], padded on the right.
    Raises, when called:
        OptionError: beams, stopping criteria or streamers, which this loop does not have.
        BudgetTooSmall: `max_new_tokens` is less than the shortest text and its end.
    """

    def run(
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Sequence[Any] = (),
        stopping_criteria: Sequence[Any] = (),
        generation_config: Any = None,
        streamer: Any = None,
        **inputs: Any,
    ) -> torch.Tensor:
        config = generation_config
        unsupported = {type(one).__name__ for one in stopping_criteria} - _STOPS
        if unsupported or streamer is not None or (config.num_beams or 1) > 1:
            raise OptionError(
                "custom_generate has no beams, streamers or stopping criteria "
                f"({', '.join(sorted(unsupported)) or 'none given'}); use GrammarLogitsProcessor for those."
            )
        vocabulary = tokenizer if isinstance(tokenizer, Vocabulary) else read_vocabulary(model, tokenizer)
        writer = Generator(
            model,
            vocabulary,
            sampler=configured_sampler(config),
            drafter=drafter,
            transforms=_transforms(logits_processor),
        )
        n = config.num_return_sequences or 1
        mask = inputs.get("attention_mask")
        mask = torch.ones_like(input_ids) if mask is None else mask
        prompts = [row[keep.bool()].tolist() for row, keep in zip(input_ids[::n], mask[::n], strict=True)]
        key = int(torch.randint(1 << 62, ()).item()) if seed is None else seed
        max_tokens = config.max_length - input_ids.shape[1] - 1  # one token ends the text
        results = writer.sample(prompts, grammar, n=n, seed=key, max_tokens=max(max_tokens, 1))
        end = vocabulary.eos[0]
        texts = [[*one.tokens, end] for several in results for one in several]
        pad = end if config.pad_token_id is None else int(config.pad_token_id)
        width = max(map(len, texts))
        padded = [text + [pad] * (width - len(text)) for text in texts]
        return torch.cat([input_ids, torch.tensor(padded, device=input_ids.device)], 1)

    return run


def _transforms(processors: Sequence[Any]) -> list[Transform]:
    """Logits processors, without those that the sampler replaces."""

    def wrapped(processor: Any) -> Transform:
        def transform(tokens: Sequence[int], logits: torch.Tensor) -> torch.Tensor:
            ids = torch.tensor([list(tokens)], device=logits.device)
            changed: torch.Tensor = processor(ids, logits[None].clone())[0]
            return changed

        return transform

    return [wrapped(one) for one in processors if type(one).__name__ not in _SAMPLER_WARPERS]
