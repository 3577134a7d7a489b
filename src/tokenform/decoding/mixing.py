"""Logit mixing: a second model, a second prompt, and penalties beside the model.

Purpose: `Mixing` holds these options and opens the companion's backbone for a call.
Invariant: the companion reads the same draft trees as the model, so that every drafter works
unchanged; both must have one vocabulary.
Complexity: a companion costs a second forward pass a step, over trees of the same size.
Rejected: mixing in a `transforms` function that runs the second model itself (no cache, no drafts).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenform.decoding.configuration import context_length
from tokenform.decoding.prompts import is_batch
from tokenform.decoding.speculative.backbone import Backbone
from tokenform.decoding.speculative.targets import Mixture, Penalties
from tokenform.errors import OptionError, PromptTooLong


@dataclass(frozen=True)
class Mixing:
    """Options beside the model itself.

    Attributes:
        mixture: of the model's logits and the companion's; one of `tokenform.targets`.
        companion: the second model, of the same vocabulary; None reads the second prompt with the model.
        penalties: on tokens that the text has already.
    """

    mixture: Mixture | None = None
    companion: Any = None
    penalties: Penalties | None = None

    def __post_init__(self) -> None:
        if self.companion is not None and self.mixture is None:
            raise OptionError("a companion model needs mixture=, one of tokenform.targets.")
        companions = getattr(self.mixture, "companions", 1)
        if self.mixture is not None and companions != 1:
            raise OptionError(f"the mixture wants {companions} companions; a generator has one.")

    @property
    def plain(self) -> bool:
        """Whether nothing changes the model's own distribution."""
        return self.mixture is None and self.penalties is None

    def backbone(self, model_backbone: Backbone) -> Backbone | None:
        """Runs the companion of one call; the model's own where a second prompt alone is mixed in."""
        if self.mixture is None:
            return None
        return (
            model_backbone
            if self.companion is None
            else Backbone(self.companion, size=model_backbone.vocabulary_size)
        )

    def prompts(self, companion_prompt: Any, count: int) -> list[Any]:
        """The companion's prompt for each of a call's prompts; None where it reads the same.

        Raises:
            OptionError: there is no companion, or they can't be paired.
        """
        if companion_prompt is not None and self.mixture is None:
            raise OptionError("companion_prompt= needs a generator with mixture=, one of tokenform.targets.")
        if companion_prompt is None or not is_batch(companion_prompt):
            return [companion_prompt] * count
        if len(companion_prompt) != count:
            raise OptionError(
                f"{len(companion_prompt)} companion prompts can't be paired with {count} prompts."
            )
        return list(companion_prompt)

    def token_budget(self, prompt_tokens: int, most: int) -> int:
        """Tokens that the companion model's context leaves for the text.

        Args:
            prompt_tokens: of its prompt.
            most: tokens where nothing bounds them.
        Raises:
            PromptTooLong: not even one token fits.
        """
        context = None if self.companion is None else context_length(self.companion)
        if context is None:
            return most
        if prompt_tokens >= context:
            raise PromptTooLong(
                f"the companion's prompt has {prompt_tokens} tokens, but the companion reads and writes "
                f"{context} at most; shorten it."
            )
        return min(most, context - prompt_tokens)
