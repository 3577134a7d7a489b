"""Weights of heads on a model's last hidden state, and the folders that hold them.

Purpose: head i makes of the state that a token was drawn at a state for the token i + 1 places behind that
one, which an output layer reads.
Formats: `heads.safetensors` and `heads.json`, which `Stack.write` makes; and Medusa's checkpoints, whose
names of tensors it has taken over.  Pickles are read as weights only.
"""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import linear, rms_norm, silu

from tokenform.errors import DrafterError

_FILES = ("heads.safetensors", "medusa_lm_head.safetensors", "medusa_lm_head.pt")
_NAME = re.compile(r"tokens|\d+\.(\d+\.linear\.(weight|bias)|projection\.weight|\d+\.weight)")


class Stack:
    """The weights of k heads.

    Args:
        weights: by name; of head i block j `i.j.linear.weight` [d, d], [d, 2 d] where `sequential`, and
            `i.j.linear.bias` [d]; behind its b blocks `i.b.weight` [n, d], an output layer of its own, or
            `i.projection.weight` [d, d] before the model's, or neither: but `silu` adds, so a head without
            them can't take back what the state says already.  `tokens` [n]: the ids that heads know.
        sequential: each head goes on from the one before, and sees the embedding of the token between them
            (Hydra); else each goes on from the model's state (Medusa).
        model: the name of the model that they were trained on.
    Raises:
        DrafterError: they are no heads.
    """

    def __init__(self, weights: dict[str, torch.Tensor], sequential: bool = False, model: str = "") -> None:
        self.weights, self.sequential, self.model = weights, sequential, model
        odd = next((name for name in weights if not _NAME.fullmatch(name)), None)
        if odd is not None:
            raise DrafterError(f"a tensor {odd!r} is no part of a head")
        firsts = [name for name in weights if name.endswith(".0.linear.bias")]
        self.count, self.blocks = (
            len(firsts),
            sum(bool(re.match(r"0\.\d+\.linear\.bias", n)) for n in weights),
        )
        self.size = len(weights[firsts[0]]) if firsts else 0
        shape = (self.size, self.size * (2 if sequential else 1))
        for head, block in itertools.product(range(max(self.count, 1)), range(max(self.blocks, 1))):
            found = weights.get(f"{head}.{block}.linear.weight")
            if found is None or f"{head}.{block}.linear.bias" not in weights or found.shape != shape:
                raise DrafterError(f"head {head} lacks a block {block} of weights {shape} and a bias")

    def state(self, head: int, state: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        """What a head makes of states [..., d] and of embeddings [..., d] of the tokens drafted last."""
        for block in range(self.blocks):
            seen, size = state, state.shape[-1:]
            if self.sequential:
                seen = torch.cat([rms_norm(state, size), rms_norm(embedding, size)], -1)
            name = f"{head}.{block}.linear."
            state = state + silu(linear(seen, self.weights[name + "weight"], self.weights[name + "bias"]))
        turned = self.weights.get(f"{head}.projection.weight")
        return state if turned is None else linear(state, turned)

    def output(self, head: int) -> torch.Tensor | None:
        """A head's own output layer [n, d]; None: the model's."""
        return self.weights.get(f"{head}.{self.blocks}.weight")

    @classmethod
    def read(cls, path: str | Path) -> Stack:
        """The heads of a folder, of this library's format (`write`) or of Medusa's checkpoints.

        Raises:
            DrafterError: there are none.
        """
        folder = Path(path)
        file = next((folder / name for name in _FILES if (folder / name).is_file()), None)
        if file is None:
            raise DrafterError(f"{folder} has no heads: none of {', '.join(_FILES)} is there")
        facts = json.loads((folder / "heads.json").read_text()) if file.name == _FILES[0] else {}
        try:
            return cls(_tensors(file), facts.get("form") == "hydra", facts.get("model", ""))
        except DrafterError as error:
            raise DrafterError(f"{file}: {error}") from None

    def write(self, path: str | Path) -> None:
        """Writes `heads.safetensors`, in float16, and `heads.json` into a folder, which is made."""
        from safetensors.torch import save_file

        folder, form = Path(path), "hydra" if self.sequential else "medusa"
        folder.mkdir(parents=True, exist_ok=True)
        found = {
            name: (tensor.detach().half() if tensor.is_floating_point() else tensor).cpu().contiguous()
            for name, tensor in self.weights.items()
        }
        save_file(found, folder / _FILES[0])
        facts = {"heads": self.count, "form": form, "hidden_size": self.size, "model": self.model}
        (folder / "heads.json").write_text(json.dumps(facts, indent=1) + "\n")


class Placed:
    """Heads beside the model whose states they read, with its weights as they are now.

    Attributes:
        heads: their number.
        sequential: `Stack.sequential`.
        tokens: int64 [n], the ids that their logits are of.
    Raises:
        DrafterError: they were made for another model.
    """

    def __init__(self, stack: Stack, model: Any) -> None:
        output, what = model.get_output_embeddings(), type(model).__name__
        weight, bias = output.weight.detach(), getattr(output, "bias", None)
        size, d = weight.shape
        if stack.size != d:
            raise DrafterError(
                f"these heads read hidden states of {stack.size} numbers, and {what} has {d};"
                f" they were made for {stack.model or 'another model'}"
            )
        own = stack.output(0)
        tokens = stack.weights.get(
            "tokens", torch.arange(size if own is None else min(size, len(own)))
        ).long()
        if int(tokens.max()) >= size or (own is not None and len(tokens) > len(own)):
            raise DrafterError(f"these heads know other tokens than the {size} of {what}")
        self.device, self.dtype, self.tokens = weight.device, weight.dtype, tokens.cpu().numpy()
        kept = tokens.to(weight.device)
        self._ids = kept.double()
        placed = {
            name: one.to(weight.device, weight.dtype if one.is_floating_point() else None)
            for name, one in stack.weights.items()
        }
        self._stack = Stack(placed, stack.sequential)
        self.heads, self.sequential = stack.count, stack.sequential
        self._embedding = model.get_input_embeddings().weight.detach().to(weight.device)
        shared = weight if len(tokens) == size else weight[kept]
        outputs = [self._stack.output(head) for head in range(self.heads)]
        self._outputs = [shared if own is None else own[: len(tokens)] for own in outputs]
        self._bias = None if bias is None or own is not None else bias.detach()[kept]

    def fits(self, model: Any) -> bool:
        """Whether the model's weights are still where they were, and of that type."""
        weight = model.get_output_embeddings().weight
        return bool((weight.device, weight.dtype) == (self.device, self.dtype))

    def states(self, head: int, states: torch.Tensor, tokens: list[int]) -> torch.Tensor:
        """What a head makes of states [n, d] and of the tokens drafted last; of [1, d] for all of them where
        these don't matter."""
        if not self.sequential:
            return self._stack.state(head, states, states)
        return self._stack.state(head, states, self._embedding[torch.tensor(tokens, device=self.device)])

    def logits(self, head: int, states: torch.Tensor) -> torch.Tensor:
        """float32 [m, n] of states [m, d] that a head has made, for the n tokens that heads know."""
        return linear(states, self._outputs[head], self._bias).float()

    def best(
        self, head: int, states: torch.Tensor, places: int, refused: torch.Tensor | None, width: int
    ) -> list[list[tuple[int, float]]]:
        """(token, chance) of the likeliest tokens at each place, best first.

        Args:
            states: [places, d], or [1, d] for all.
            refused: bool [places, n], tokens that are left out before; None: none.
        """
        rows = self.logits(head, states).expand(places, -1)
        if refused is not None:
            rows = rows.masked_fill(refused, float("-inf"))
        chances, at = torch.softmax(rows, -1).topk(min(width, rows.shape[1]))
        told = torch.stack([self._ids[at], chances.double()]).tolist()  # one transfer
        # where none is allowed each chance is NaN
        return [[(int(t), p) for t, p in zip(*own, strict=True) if p > 0] for own in zip(*told, strict=True)]

    def outside(self, allowed: np.ndarray) -> torch.Tensor:
        """bool [n], the known tokens that are not among those allowed, bool [V]."""
        return torch.from_numpy(~allowed[self.tokens]).to(self.device)


def _tensors(file: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    try:
        if file.suffix == ".pt":
            return dict(torch.load(file, map_location="cpu", weights_only=True))
        return load_file(file)
    except Exception as error:  # each format has errors of its own
        raise DrafterError(f"{file} can't be read: {error}") from error
