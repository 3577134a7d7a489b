"""Steps of decoding as passes of fixed shapes: compiled, and on a GPU replayed as CUDA graphs.

Purpose: a step of few tokens is some hundred small kernels, and launching them from Python takes longer than
they do.  A compiled pass launches fewer; a graph of it is launched as one.  A graph of the model as it is
(`GRAPHS`) needs no compiler: a shape takes a tenth of a second, not a minute.
Layout: row r of the cache is line r of the pass, and a pass attends over all slots of the cache, which has
room for a power of two of each.  Ids, positions and slots are written to one buffer, who sees whom to
another, keys and values where the slots say: all of it stays where it is from step to step, as a graph
demands.
Invariant: a shape's first pass is run as it is, too, and a model whose answers differ is compiled no more;
what a model can't do is found there, said once, and costs no text.  What is given back is a copy, for the
next replay overwrites a graph's own.
Complexity: a compilation a shape, of which a generator has `_MOST` at most; a capture a shape and cache.
Memory: a cache and its graphs are kept for the generator's next call, `_IDLE` of them at most, each of them
where it takes no more than a `_PART`th of the model.
Rejected: the library's own static cache (it has no slots to free, so no drafts, forks or rows that come and
go); `mode="reduce-overhead"` (its graphs belong to the thread that made them, and are given up where buffers
change); shapes that are symbols (a graph has one size anyway); prompts (their passes are long, so launching
them is not what takes time).
"""

from __future__ import annotations

import itertools
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from ..scores import Scores
from .facts import differ, out_of_memory, weight_bytes
from .model_mark import module_mark
from .packing import Line, Packed, Windows, additive, within
from .slots import SlotCache, SlotRow

if TYPE_CHECKING:
    from .base import Counters
    from .head import Tapped

BACKEND = "inductor"
GRAPHS = "graphs"
"""In place of a compiler: graphs of the model as it is."""
_TOKENS = (1, 4, 16, 64)  # tokens of a line
_SLOTS = 256  # fewest slots
_POSITIONS = 1024  # most positions of a pass; of more, launching is the smaller part
_MOST = 32  # shapes that are compiled
_SPARE = 4  # rows and slots are given up when so small a part of them is in use
_IDLE = 2  # caches that wait for a call, with their graphs
_PART = 8
_WARM = 2  # runs before a graph is captured, which load kernels and choose among them

_refused: weakref.WeakKeyDictionary[Any, dict[str, tuple[int, str]]] = weakref.WeakKeyDictionary()
"""Model -> option -> the mark under which it was refused, and why."""
_numbers = itertools.count()

Key = tuple[int, int, int, int]
"""A hash of the model's `module_mark`; rows, tokens and slots."""

Pass = Callable[
    [torch.Tensor, torch.Tensor, list[torch.Tensor], list[torch.Tensor], torch.Tensor | None], torch.Tensor
]
"""(tokens, seen, keys, values, where hidden states [rows, tokens, d] go) -> logits [rows, tokens, V]."""


class Compiled:
    """The passes of one model that are compiled; the calls and threads of a generator share them.

    Args:
        backend: of `torch.compile`; None is its own; `GRAPHS` does without.
        graphs: capture them where the model is on a GPU.
    """

    def __init__(self, backend: str | None = None, graphs: bool = True) -> None:
        self.backend, self.graphs = backend or BACKEND, graphs
        self.option = f'compile="{GRAPHS}"' if backend == GRAPHS else "compile=True"
        self.checked: set[Key] = set()  # shapes whose answers are those of the model as it is
        self._passes: dict[Key, Pass] = {}
        self._idle: list[Buffers] = []
        self._lock = threading.Lock()

    def take(self, mark: int) -> Buffers:
        """Buffers that an earlier call of the same modules has left, or new ones."""
        with self._lock:
            self._idle = [one for one in self._idle if one.mark == mark]
            return self._idle.pop() if self._idle else Buffers(mark)

    def give_back(self, buffers: Buffers, model_bytes: int) -> None:
        """Keeps the buffers of a call that has ended for the next one."""
        with self._lock:
            if buffers.steps and len(self._idle) < _IDLE and _PART * buffers.cache.bytes <= model_bytes:
                self._idle.append(buffers)

    def made(self, key: Key, make: Callable[[], Pass]) -> Pass | None:
        """The pass of a shape; None where there are too many."""
        with self._lock:
            if key not in self._passes and len(self._passes) < _MOST:
                run = make()
                if self.backend != GRAPHS:
                    run = torch.compile(run, backend=self.backend, dynamic=False, fullgraph=True)
                self._passes[key] = run
            return self._passes.get(key)


class _FixedSlots:
    """Stands for the model's cache within a pass: writes to slots, gives back all of them."""

    is_compileable = True

    def __init__(
        self, keys: dict[int, torch.Tensor], values: dict[int, torch.Tensor], slots: torch.Tensor
    ) -> None:
        self.keys, self.values, self.slots = keys, values, slots
        self.rows = torch.arange(slots.shape[0], device=slots.device)[:, None]

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        held = self.keys[layer_idx], self.values[layer_idx]
        for store, new in zip(held, (keys, values), strict=True):
            store[self.rows, :, self.slots] = new.transpose(1, 2).to(store.dtype)
        return held

    def get_seq_length(self, layer_idx: int = 0, *_: Any, **__: Any) -> int:
        return next(iter(self.keys.values())).shape[2]

    def get_mask_sizes(self, query_length: int, layer_idx: int = 0, *_: Any, **__: Any) -> tuple[int, int]:
        return self.get_seq_length(), 0


@dataclass
class _Step:
    """A pass with its buffers.

    Attributes:
        run: the compiled pass over its buffers.
        tokens: int64 [3, rows, tokens]: ids, positions, slots.
        seen: bool [types of layers, rows, tokens, slots].
        given: [rows, tokens, d], the last run's hidden states; None: they are not kept.
        graph: of `run`, and the logits that a replay writes to; None: it is run.
    """

    run: Callable[[], torch.Tensor]
    tokens: torch.Tensor
    seen: torch.Tensor
    given: torch.Tensor | None = None
    graph: tuple[Any, torch.Tensor] | None = None

    def __call__(self, packed: Packed, windows: Windows) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Logits [N, V] at the wanted positions, and hidden states [N, d] there."""
        self.tokens.copy_(torch.from_numpy(packed.tokens), non_blocking=True)
        kinds = within(packed.allowed, packed.positions, packed.seen, windows)
        for own, seen in zip(self.seen, kinds.values(), strict=True):
            own.copy_(torch.from_numpy(seen), non_blocking=True)
        if self.graph is None:
            logits = self.run()
        else:
            self.graph[0].replay()
            logits = self.graph[1]
        wanted, rows = packed.wanted(self.tokens.shape[2]), logits.flatten(0, 1)
        at = torch.from_numpy(wanted).to(rows.device)
        given = None if self.given is None else self.given.flatten(0, 1)[at]
        return (rows if self.graph is None and len(wanted) == len(rows) else rows[at]), given


@dataclass
class Buffers:
    """What passes of fixed shapes write to and read from; graphs know where it is.

    Attributes:
        mark: a hash of the model's `module_mark`.
        edition: of the model's weights, as the cache of prompts counts them; None: not known yet.
        room: rows and slots of the cache.
        steps: passes by their tokens a line.
        pool: memory of the graphs, of which one is replayed at a time.
    """

    mark: int
    edition: int | None = None
    cache: SlotCache = field(default_factory=SlotCache)
    room: tuple[int, int] = (1, _SLOTS)
    steps: dict[int, _Step] = field(default_factory=dict)
    pool: Any = None


class StaticPasses:
    """The steps of one backbone.

    Args:
        compiled: the generator's.
        model: whose steps they are.
        name: by which the model takes a cache.
        windows: of the model's layers.
        counters: where notes go, and what is compiled is counted.
        kept: whether the buffers are another call's before and after.
        tapped: `WantedLogits.tapped`.
    Attributes:
        cache: the backbone's.
        given: hidden states [N, d] of the last run; None where it was the model's as it is.
    """

    def __init__(
        self,
        compiled: Compiled,
        model: Any,
        name: str,
        windows: Windows,
        counters: Counters,
        kept: bool,
        tapped: Callable[[Any], tuple[Any, Tapped] | None],
    ) -> None:
        self._compiled, self._model, self._name, self._tapped = compiled, model, name, tapped
        self.given: torch.Tensor | None = None
        self._size = 0  # of a hidden state; 0: they are not told, for what is compiled gives logits alone
        if compiled.backend == GRAPHS and tapped(model) is not None:
            self._size = model.get_output_embeddings().weight.shape[1]
        self._windows, self._counters = windows, counters
        self._mark = hash(module_mark(model))
        self._buffers = compiled.take(self._mark) if kept else Buffers(self._mark)
        self.cache = self._buffers.cache
        if kept:
            weakref.finalize(self, compiled.give_back, self._buffers, weight_bytes(model)).atexit = False
        mark, why = _refused.get(model, {}).get(compiled.option, (None, ""))
        if mark != self._mark:
            why = _split(model)
        if not why and compiled.backend == GRAPHS and not replays(next(model.parameters()).device):
            why = "there are no CUDA graphs on this device"
        self.off = bool(why)
        if why:
            self._note(why)

    @property
    def tells(self) -> bool:
        """Whether hidden states are told."""
        return self._size > 0

    def room(self, rows: int, slots: int) -> tuple[int, int]:
        """Rows and slots that the cache has to have room for, where so many are in use."""
        had = self._buffers.room
        self._buffers.room = _kept(had[0], rows), _kept(had[1], max(slots, _SLOTS))
        return self._buffers.room

    def runs_with(self, edition: int) -> None:
        """Says which edition of the model runs: what was captured of another is of no use any more."""
        buffers = self._buffers
        if buffers.edition not in (None, edition):
            buffers.steps.clear()
            self._mark = buffers.mark = hash(module_mark(self._model))
        buffers.edition = edition

    def run(
        self, lines: Sequence[Line], rows: Sequence[SlotRow], as_is: Callable[[], torch.Tensor | Scores]
    ) -> torch.Tensor | Scores:
        """Logits [N, V] of the wanted tokens of a pass, compiled where it can be.

        Args:
            as_is: runs the pass as the model is.
        """
        self.given = None
        room = self.room(len(rows), max(len(row.count) for row in rows))
        tokens = self._tokens(lines)
        key = self._mark, room[0], tokens, room[1]
        try:
            step = self._step(key) if tokens else None
            if step is not None:
                with torch.inference_mode():
                    got, given = step(Packed(lines, rows, key[1:]), self._windows)
        except Exception as error:
            want = as_is()  # what the model itself raises is raised here
            self._give_up(error)
            return want
        if step is None:
            self._counters.unusual += not self.off
            return as_is()
        self._counters.positions += room[0] * tokens
        if key in self._compiled.checked:
            self.given = given
            return got
        want = as_is()
        apart = differ(got, want) if isinstance(want, torch.Tensor) else ""
        if apart:
            self._refuse(f"compiled, its answers differ by {apart}")
        else:
            self._compiled.checked.add(key)
        return want

    def _tokens(self, lines: Sequence[Line]) -> int:
        """Tokens of a line of the shape that serves a pass; 0 for none."""
        one_each = len({row for row, _ in lines}) == len(lines)
        short = all(len(item.pending) <= 1 for _, items in lines for item in items)
        if self.off or not self.cache.keys or not one_each or not short:
            return 0
        if len(lines) * _SPARE <= self._buffers.room[0]:  # few of the rows: most of it would be padding
            return 0
        longest = max(sum(item.wanted for item in items) for _, items in lines)
        fitting = [t for t in _TOKENS if t >= longest and t * self._buffers.room[0] <= _POSITIONS]
        return fitting[0] if fitting else 0

    def _step(self, key: Key) -> _Step | None:
        _, rows, tokens, slots = key
        if self.cache.fit((rows, slots)):  # graphs know where keys and values were
            self._buffers.steps.clear()
        step = self._buffers.steps.get(tokens)
        if step is not None:
            return step
        run = self._compiled.made(key, self._pass)
        if run is None:
            self._note(f"more than {_MOST} shapes of passes came up, and further ones are not compiled")
            return None
        self._counters.unusual += 1
        keys, values = list(self.cache.keys.values()), list(self.cache.values.values())
        with torch.inference_mode():
            held = torch.zeros((3, rows, tokens), dtype=torch.int64, device=keys[0].device)
            seen = torch.zeros(
                (len(self._windows), rows, tokens, slots), dtype=torch.bool, device=keys[0].device
            )
            seen[..., 0] = True
            given = keys[0].new_zeros(rows, tokens, self._size) if self.tells else None
            step = _Step(lambda: run(held, seen, keys, values, given), held, seen, given)
            if self._compiled.graphs and replays(held.device):
                self._capture(step)
        self._buffers.steps[tokens] = step
        return step

    def _capture(self, step: _Step) -> None:
        step.run()  # compiled here, so that what fails below is the capture
        try:
            if not self._buffers.steps and step.tokens.is_cuda:
                self._buffers.pool = torch.cuda.graph_pool_handle()
            step.graph = captured(step.run, step.tokens.device, self._buffers.pool)
        except Exception as error:
            if out_of_memory(error) or self._compiled.backend == GRAPHS:
                raise
            self._compiled.graphs = False
            self._note(f"no CUDA graph can be captured of it ({_first(error)}): it is compiled alone")

    def _pass(self) -> Pass:
        """What is compiled for a shape.  Its code is its own, for compilations are counted by it."""
        model, name, kinds, tapped = self._model, self._name, list(self._windows), self._tapped
        layers, dtype = list(self.cache.keys), next(model.parameters()).dtype

        def run(
            tokens: torch.Tensor,
            seen: torch.Tensor,
            keys: list[torch.Tensor],
            values: list[torch.Tensor],
            given: torch.Tensor | None,
        ) -> torch.Tensor:
            cache = _FixedSlots(
                dict(zip(layers, keys, strict=True)), dict(zip(layers, values, strict=True)), tokens[2]
            )
            masks = [additive(seen[n], dtype) for n in range(len(kinds))]
            view, head = (None if given is None else tapped(model)) or (model, None)
            logits: torch.Tensor = view(
                input_ids=tokens[0],
                attention_mask=masks[0] if len(masks) == 1 else dict(zip(kinds, masks, strict=True)),
                position_ids=tokens[1],
                use_cache=True,
                **{name: cache},
            ).logits
            if given is not None and head is not None and head.given is not None:
                given.copy_(head.given)
            return logits

        code = run.__code__.replace(co_name=f"pass_{next(_numbers)}")
        return types.FunctionType(code, run.__globals__, code.co_name, None, run.__closure__)

    def _give_up(self, error: Exception) -> None:
        if out_of_memory(error):  # says nothing about the model: the next call tries again
            self._stop()
            self._note("no memory was left for compiled passes")
        else:
            what = (
                "no CUDA graph can be captured of it"
                if self._compiled.backend == GRAPHS
                else "it can't be compiled"
            )
            self._refuse(f"{what} ({_first(error)})")

    def _refuse(self, why: str) -> None:
        self._stop()
        option, known = self._compiled.option, _refused.setdefault(self._model, {})
        if known.get(option, (None,))[0] != self._mark:
            known[option] = self._mark, why
            warnings.warn(f"{type(self._model).__name__}: {option}: {why}; it runs as it is", stacklevel=2)
        self._note(why)

    def _stop(self) -> None:
        self.off = True
        self._buffers.steps.clear()

    def _note(self, why: str) -> None:
        note = f"{self._compiled.option}: {why}"
        if note not in self._counters.notes:
            self._counters.notes.append(note)


def replays(device: torch.device) -> bool:
    """Whether passes on a device can be captured."""
    return device.type == "cuda"


def captured(run: Callable[[], torch.Tensor], device: torch.device, pool: Any) -> tuple[Any, torch.Tensor]:
    """A CUDA graph of a pass, and the logits that its replays write to.

    Other threads may go on meanwhile, hence the mode.
    """
    with torch.cuda.device(device):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM):
                run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            logits = run()
        return graph, logits


def _split(model: Any) -> str:
    """Why a model is not tried: between its parts on several devices hooks move what they are given."""
    if len(set((getattr(model, "hf_device_map", None) or {}).values())) > 1:
        return "it is split over several devices"
    return ""


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:120]}" if lines else type(error).__name__


def _kept(had: int, wanted: int) -> int:
    """A power of two to have room for: the one that there was, unless it is too small or far too large."""
    least = 1 << (max(wanted, 1) - 1).bit_length()
    return had if least <= had < least * _SPARE else least
