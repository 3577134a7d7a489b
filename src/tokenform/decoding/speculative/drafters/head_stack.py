"""Weights of heads on a model's last hidden state, and the folders that hold them.

Purpose: head i makes of the state that a token was drawn at a state for the token i + 1 places behind that
one, which an output layer reads.
Formats: `heads.safetensors` and `heads.json`, which `Stack.write` makes; and Medusa's checkpoints, whose
names of tensors it has taken over.  Pickles are read as weights only.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import linear, rms_norm, silu

from tokenform.errors import DrafterError

_FILES = ("heads.safetensors", "medusa_lm_head.safetensors", "medusa_lm_head.pt")
_BLOCK = re.compile(r"(\d+)\.(\d+)\.linear\.(weight|bias)")
_PROJECTION = re.compile(r"(\d+)\.projection\.weight")
_OUTPUT = re.compile(r"(\d+)\.(\d+)\.weight")


@dataclass
class Stack:
    """The weights of k heads.

    Attributes:
        blocks: of each head its residual blocks, (weight [d, d], bias [d]); with `sequential` [d, 2 d].
        sequential: each head goes on from the one before, and sees the embedding of the token between them
            (Hydra); else each goes on from the model's state (Medusa).
        projections: of each head a matrix [d, d] behind its blocks, without which it can't take back what the
            state says already (`silu` adds), unless it has an output layer of its own; None: none.
        outputs: of each head its output layer [n, d]; None: the model's.
        tokens: int64 [n], the ids that are drafted; None: all.
        model: the name of the model that they were trained on.
    """

    blocks: list[list[tuple[torch.Tensor, torch.Tensor]]]
    sequential: bool = False
    outputs: list[torch.Tensor] | None = None
    tokens: torch.Tensor | None = None
    model: str = ""
    projections: list[torch.Tensor] | None = None

    @property
    def size(self) -> int:
        """d."""
        return len(self.blocks[0][0][1])

    def state(self, head: int, state: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        """What a head makes of states [..., d] and of embeddings [..., d] of the tokens drafted last."""
        for weight, bias in self.blocks[head]:
            seen = state
            if self.sequential:
                size = state.shape[-1:]
                seen = torch.cat([rms_norm(state, size), rms_norm(embedding, size)], -1)
            state = state + silu(linear(seen, weight, bias))
        return state if self.projections is None else linear(state, self.projections[head])

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
        blocks: dict[int, dict[int, dict[str, torch.Tensor]]] = {}
        outputs, projections, tokens = dict[int, torch.Tensor](), dict[int, torch.Tensor](), None
        for name, tensor in _tensors(file).items():
            if found := _BLOCK.fullmatch(name):
                blocks.setdefault(int(found[1]), {}).setdefault(int(found[2]), {})[found[3]] = tensor
            elif found := _OUTPUT.fullmatch(name):
                outputs[int(found[1])] = tensor
            elif found := _PROJECTION.fullmatch(name):
                projections[int(found[1])] = tensor
            elif name == "tokens":
                tokens = tensor.long()
            else:
                raise DrafterError(f"{file} has a tensor {name!r}, which is no part of a head")
        sequential = facts.get("form", "medusa") == "hydra"
        try:
            every = [[(b["weight"], b["bias"]) for _, b in sorted(blocks[i].items())] for i in sorted(blocks)]
            own = [outputs[i] for i in sorted(blocks)] if outputs else None
            turned = [projections[i] for i in sorted(blocks)] if projections else None
            d = len(every[0][0][1])
        except (KeyError, IndexError):
            raise DrafterError(f"{file} lacks weights of some head") from None
        shape = (d, 2 * d if sequential else d)
        if any(weight.shape != shape for head in every for weight, _ in head):
            raise DrafterError(f"{file}: blocks of these heads have weights of other shapes than {shape}")
        return cls(every, sequential, own, tokens, facts.get("model", ""), turned)

    def write(self, path: str | Path) -> None:
        """Writes `heads.safetensors`, in float16, and `heads.json` into a folder, which is made."""
        from safetensors.torch import save_file

        folder, found = Path(path), dict[str, torch.Tensor]()
        folder.mkdir(parents=True, exist_ok=True)
        for i, head in enumerate(self.blocks):
            for j, pair in enumerate(head):
                for kind, tensor in zip(("weight", "bias"), pair, strict=True):
                    found[f"{i}.{j}.linear.{kind}"] = tensor.detach().half().cpu().contiguous()
            if self.projections is not None:
                found[f"{i}.projection.weight"] = self.projections[i].detach().half().cpu().contiguous()
            if self.outputs is not None:
                found[f"{i}.{len(head)}.weight"] = self.outputs[i].detach().half().cpu().contiguous()
        if self.tokens is not None:
            found["tokens"] = self.tokens.int().cpu()
        save_file(found, folder / _FILES[0])
        facts = {
            "heads": len(self.blocks),
            "form": "hydra" if self.sequential else "medusa",
            "hidden_size": self.size,
            "model": self.model,
        }
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
        output = model.get_output_embeddings()
        weight, bias = output.weight.detach(), getattr(output, "bias", None)
        size, d = weight.shape
        if stack.size != d:
            raise DrafterError(
                f"these heads read hidden states of {stack.size} numbers, and {type(model).__name__} has {d};"
                f" they were made for {stack.model or 'another model'}"
            )
        known = len(stack.outputs[0]) if stack.outputs else size
        tokens = torch.arange(min(known, size)) if stack.tokens is None else stack.tokens
        if int(tokens.max()) >= size or (stack.outputs and len(tokens) > known):
            raise DrafterError(f"these heads know other tokens than the {size} of {type(model).__name__}")
        self.device, self.tokens = weight.device, tokens.numpy()
        self._ids = tokens.to(weight.device, torch.float64)

        def placed(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(weight.device, weight.dtype)

        blocks = [[(placed(weight), placed(bias)) for weight, bias in head] for head in stack.blocks]
        turned = stack.projections and [placed(own) for own in stack.projections]
        self._stack = Stack(blocks, stack.sequential, projections=turned)
        self.heads, self.sequential = len(blocks), stack.sequential
        self._embedding = model.get_input_embeddings().weight.detach()
        kept = tokens.to(weight.device)
        if stack.outputs:
            self._outputs = [placed(own[: len(tokens)]) for own in stack.outputs]
            self._bias = None
        else:
            self._outputs = [weight if len(tokens) == size else weight[kept]] * self.heads
            self._bias = None if bias is None else bias.detach()[kept]

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
        return [
            [
                (int(token), chance) for token, chance in zip(*own, strict=True) if chance > 0
            ]  # NaN: none is allowed
            for own in zip(*told, strict=True)
        ]

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
