"""Linear layers whose weights are stored in the order that the processor's kernels read them in.

Purpose: a step of decoding multiplies a few rows with every weight of the model.  Where a weight lies row by
row, the library reorders it at each product, or takes a kernel that does without and is slow.  oneDNN takes
weights that were reordered once ("prepacked"): products of 1 to 300 rows then take a half to a fifth of the
time (`python benchmarks/prepacking.py`).
Invariant: the row of a product does not depend on how many rows there are, to the last bit: a single row
runs as two, for one alone has kernels of its own.  Whoever asks for the weights (moves, saves, copies or
trains the model) gets them as they were.
Memory: a weight is held once, prepacked, unless another module has it too or it is the head's, of which
single rows are read.  It is the process's own then, while plain weights of a file may be mapped and shared by
processes: so a model that takes more than a `_PART`th of the memory that is available stays plain.
Source: PyTorch's `mkldnn::_reorder_linear_weight` and `mkldnn::_linear_pointwise`, which its compiler uses
for frozen models.
Rejected: `torch.utils.mkldnn.to_mkldnn` (public, but it reorders at each product: 1.2 to 2 times the time);
MKL's packed products (`mkl::_mkl_linear`: no faster than without on AMD).
"""

from __future__ import annotations

import math
import platform
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from torch.nn.functional import linear

_ROWS = 8  # what the order is chosen for; it serves any number of rows
_FEWEST = 1 << 16  # values of a weight from which on it pays
_PART = 3
_DTYPES = (torch.float32, torch.bfloat16)
_MACHINES = ("x86_64", "AMD64")  # elsewhere it was not measured

Model = TypeVar("Model", bound=torch.nn.Module)


class PrepackedLinear(torch.nn.Linear):
    """A linear layer in place of a plain one, with the same name, weight and answers.

    Args:
        plain: the layer that it stands for.
        shared: keep the weight as it is, too.
    """

    def __init__(self, plain: torch.nn.Linear, shared: bool) -> None:
        torch.nn.Module.__init__(self)
        self.in_features, self.out_features = plain.in_features, plain.out_features
        self.weight, self.bias, self.training = plain.weight, plain.bias, plain.training
        self.shared, self._learned = shared, plain.weight.requires_grad
        self._pack()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        prepacked = self._prepacked
        learns = torch.is_grad_enabled() and (input.requires_grad or self.weight.requires_grad)
        if prepacked is None or learns or _version(self.weight) != self._version:
            return linear(input, self._dense(), self.bias)
        single = input.numel() == self.in_features
        rows = input.reshape(1, -1).expand(2, -1) if single else input
        out: torch.Tensor = torch.ops.mkldnn._linear_pointwise(rows, prepacked, self.bias, "none", [], "")
        return out[0].view(*input.shape[:-1], -1) if single else out

    def _pack(self) -> None:
        """Prepacks the weight, if it is one that this serves."""
        self._prepacked, self._version = None, 0
        if _serves(self.weight):
            self._prepacked = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), _ROWS)
            if not self.shared:
                self.weight = torch.nn.Parameter(self._prepacked, requires_grad=False)
            self._version = _version(self.weight)

    def _dense(self) -> torch.nn.Parameter:
        """The weight row by row."""
        if self.weight.layout == torch.strided:
            return cast("torch.nn.Parameter", self.weight)
        return torch.nn.Parameter(self.weight.to_dense(), requires_grad=self._learned)

    def _unpack(self) -> None:
        self.weight, self._prepacked = self._dense(), None

    def train(self, mode: bool = True) -> PrepackedLinear:
        if mode:
            self._unpack()
        elif self._prepacked is None:
            self._pack()
        return super().train(mode)

    def _apply(self, fn: Any, recurse: bool = True) -> PrepackedLinear:
        self._unpack()
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._pack()
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"] = self._dense() if keep_vars else self._dense().detach()

    def _load_from_state_dict(self, *args: Any) -> None:
        self._unpack()
        super()._load_from_state_dict(*args)
        self._pack()

    def __getstate__(self) -> dict[str, Any]:
        parameters = {**self._parameters, "weight": self._dense()}
        return {**self.__dict__, "_parameters": parameters, "_prepacked": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._pack()


def prepack(model: Model) -> Model:
    """Prepacks the weights of a model that runs on the processor, in place.

    Args:
        model: in evaluation mode.  Its large linear layers (`torch.nn.Linear`, float32 or bfloat16, without
            hooks) are replaced.  Nothing is done where this machine's PyTorch has no such products, or too
            little memory is left.
    Returns:
        The model.
    """
    if _PART * _bytes_of(model) > _memory_available():
        return model
    output = getattr(model, "get_output_embeddings", lambda: None)()
    owners = Counter(id(one) for module in model.modules() for one in module._parameters.values())
    places: dict[int, list[tuple[torch.nn.Module, str]]] = {}
    for parent in model.modules():
        for name, layer in parent._modules.items():
            if isinstance(layer, torch.nn.Linear) and _is_plain(layer):
                places.setdefault(id(layer), []).append((parent, name))
    for found in places.values():  # nothing else holds a layer now, so each makes room for the next
        (parent, name), *_ = found
        layer = cast("torch.nn.Linear", parent._modules[name])
        made = PrepackedLinear(layer, layer is output or owners[id(layer.weight)] > 1)
        for parent, name in found:
            parent._modules[name] = made
        del layer
    return model


def unpack(model: Model) -> Model:
    """Gives a model its plain linear layers back, in place; the reverse of `prepack`."""
    for parent in list(model.modules()):
        for name, layer in parent._modules.items():
            if isinstance(layer, PrepackedLinear):
                plain = torch.nn.Linear(1, 1, bias=False, device="meta")
                plain.in_features, plain.out_features = layer.in_features, layer.out_features
                plain.weight, plain.bias, plain.training = layer._dense(), layer.bias, layer.training
                parent._modules[name] = plain
    return model


def _bytes_of(model: torch.nn.Module) -> int:
    return sum(one.numel() * one.element_size() for one in model.parameters())


def _memory_available() -> float:
    """Bytes that processes may still take; infinite where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return math.inf


def _is_plain(layer: torch.nn.Linear) -> bool:
    hooked = layer._forward_hooks or layer._forward_pre_hooks or "forward" in vars(layer)
    return type(layer) is torch.nn.Linear and not hooked and _serves(layer.weight)


def _serves(weight: Any) -> bool:
    plain = type(weight) is torch.nn.Parameter and weight.layout == torch.strided
    fits = plain and weight.device.type == "cpu" and weight.numel() >= _FEWEST
    return fits and weight.dtype in _DTYPES and _available(weight.dtype)


def _version(weight: torch.Tensor) -> int:
    """How often the weight was written to in place."""
    return 0 if weight.is_inference() else weight._version


@cache
def _available(dtype: torch.dtype) -> bool:
    """Whether this machine's PyTorch has these products of such numbers, and they are right."""
    if platform.machine() not in _MACHINES or not torch.backends.mkldnn.is_available():
        return False
    weight = torch.linspace(-1, 1, 32 * 48).view(32, 48).to(dtype)
    rows = torch.linspace(-1, 1, 2 * 48).view(2, 48).to(dtype)
    try:
        prepacked = torch.ops.mkldnn._reorder_linear_weight(weight, _ROWS)
        got = torch.ops.mkldnn._linear_pointwise(rows, prepacked, None, "none", [], "")
        kept = torch.equal(prepacked.to_dense(), weight)
    except (AttributeError, RuntimeError, TypeError):  # another version of PyTorch, or of processor
        return False
    want = linear(rows.double(), weight.double())
    return kept and torch.allclose(got.double(), want, atol=1e-4 if dtype == torch.float32 else 0.1)
