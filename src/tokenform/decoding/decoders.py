"""Makes the decoder of each call, and keeps what calls share.

Purpose: each call has its own decoder.  Kept for later calls: prompts, measured costs of passes, spellings,
and each thread's masks on the device.
Invariant: no two running calls write to one cache of the model.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from tokenform.decoding.decoder import Decoder, bytes_encoder, drafting_pays
from tokenform.decoding.prepacked import unpack
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.backbone import GRAPHS, Backbone, Compiled, PromptCache, device_of
from tokenform.decoding.speculative.drafters.merge import auto as auto_drafter
from tokenform.decoding.speculative.matching import DeviceDraws
from tokenform.decoding.speculative.places import Places
from tokenform.decoding.speculative.policies import Controller
from tokenform.engine import Vocabulary
from tokenform.errors import OptionError
from tokenform.masking import CAPACITY, MaskTable

if TYPE_CHECKING:
    from tokenform.decoding.generator import Generator


class Decoders:
    """Makes the decoders of a generator.

    Args:
        prompts: most bytes of what prompts leave.
        compiled: whether steps are compiled passes; "graphs": CUDA graphs alone.
    """

    def __init__(
        self, model: Any, vocabulary: Vocabulary, tokenizer: Any, prompts: int, compiled: bool | str = False
    ) -> None:
        if compiled not in (False, True, GRAPHS):
            raise OptionError(f'compile is False, True or "{GRAPHS}", not {compiled!r}.')
        if compiled is True and isinstance(model, torch.nn.Module):
            unpack(model)  # a compiler reads plain weights
        self._compiled = Compiled(GRAPHS if compiled == GRAPHS else None) if compiled else None
        self._model, self._vocabulary, self._tokenizer = model, vocabulary, tokenizer
        self.prompts, self._of_thread = PromptCache(prompts), threading.local()
        # what drafts and passes cost is learnt over all calls
        self._default_drafter, self._controller = auto_drafter(), Controller()

    def make(
        self, generator: Generator, chosen: Local, rows: int, *, drafter: Any, joining: bool = False
    ) -> Decoder:
        """A decoder.

        Args:
            generator: has the options.
            rows: how many run together.
            drafter: proposes tokens; "auto" is the default one, where drafting pays.
            joining: rows come and go one by one, perhaps in another thread than the generator's calls.
        """
        backbone = Backbone(
            self._model, prompts=self.prompts, size=self._vocabulary.size, compiled=self._compiled
        )
        if drafter == "auto":
            drafter = self._default_drafter if drafting_pays(backbone, rows) else None
        return Decoder(
            backbone,
            chosen,
            self._vocabulary,
            generator.transforms,
            drafter=drafter,
            policy=self._controller if generator.policy is None else generator.policy(),
            encode=self.encode,
            mixing=generator.mixing,
            matcher=DeviceDraws(backbone.device) if joining else self._matcher(rows),
        )

    def _matcher(self, rows: int) -> DeviceDraws:
        """Draws, with the masks that this thread's calls have put on the model's device."""
        device, kept = device_of(self._model), self._of_thread.__dict__
        places: Places = kept.setdefault("places", Places())
        table: MaskTable | None = kept.get("table")
        if device.type != "cpu" and (table is None or table.capacity < rows):
            table = kept["table"] = MaskTable(self._vocabulary.size, device, capacity=max(CAPACITY, rows))
        return DeviceDraws(device, table, places)

    @cached_property
    def encode(self) -> Callable[[bytes], list[int]] | None:
        """Bytes as the model's tokenizer writes them; None without one."""
        return bytes_encoder(self._tokenizer, self._vocabulary)
