"""What runs the rows of a generator's calls.

Purpose: each call gets a decoder of its own; what calls leave to later ones is kept here: prompts, what
passes cost, what was spelled, and each thread's masks on the device.
Invariant: calls share no cache of a model that is being written to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tokenform.decoding.decoder import Decoder, pays, speller
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.backbone import Backbone, Compiled, PromptCache, device_of
from tokenform.decoding.speculative.drafters.merge import auto as auto_drafter
from tokenform.decoding.speculative.matching import DeviceDraws
from tokenform.decoding.speculative.places import Places
from tokenform.decoding.speculative.policies import Controller
from tokenform.engine import Vocabulary
from tokenform.masking import CAPACITY, MaskTable

if TYPE_CHECKING:
    from tokenform.decoding.generator import Generator


class Decoders:
    """Makes the decoders of a generator.

    Args:
        prompts: most bytes of what prompts leave.
        compiled: whether steps are compiled passes.
    """

    def __init__(
        self, model: Any, vocabulary: Vocabulary, tokenizer: Any, prompts: int, compiled: bool = False
    ) -> None:
        self._compiled = Compiled() if compiled else None
        self._model, self._vocabulary, self._tokenizer = model, vocabulary, tokenizer
        self.prompts, self._of_thread = PromptCache(prompts), threading.local()
        # what drafts and passes cost is learnt over all calls
        self._default_drafter, self._controller = auto_drafter(), Controller()

    def make(
        self, own: Generator, chosen: Local, rows: int, *, drafter: Any, joining: bool = False
    ) -> Decoder:
        """What runs rows.

        Args:
            own: the generator, for its options.
            rows: how many run together.
            drafter: guesses; "auto" the default one, where drafts pay.
            joining: they come and go one by one, and perhaps in another thread than the generator's calls.
        """
        backbone = Backbone(
            self._model, prompts=self.prompts, size=self._vocabulary.size, compiled=self._compiled
        )
        if drafter == "auto":
            drafter = self._default_drafter if pays(backbone, rows) else None
        return Decoder(
            backbone,
            chosen,
            self._vocabulary,
            own.transforms,
            drafter=drafter,
            policy=self._controller if own.policy is None else own.policy(),
            encode=self.encode,
            mixing=own.mixing,
            matcher=DeviceDraws(backbone.device) if joining else self._matcher(rows),
        )

    def _matcher(self, rows: int) -> DeviceDraws:
        """Draws where this thread's calls left masks on the model's device."""
        device, own = device_of(self._model), self._of_thread.__dict__
        places: Places = own.setdefault("places", Places())
        table: MaskTable | None = own.get("table")
        if device.type != "cpu" and (table is None or table.capacity < rows):
            table = own["table"] = MaskTable(self._vocabulary.size, device, capacity=max(CAPACITY, rows))
        return DeviceDraws(device, table, places)

    @cached_property
    def encode(self) -> Callable[[bytes], list[int]] | None:
        """Bytes as the model's tokenizer writes them; None without one."""
        return speller(self._tokenizer, self._vocabulary)
