"""The two figures of masks on a GPU: what applying them costs, and what constrained decoding costs.

    python benchmarks/device.py --transformers                           # on a GPU
    TRITON_INTERPRET=1 python benchmarks/device.py --device cpu --tiny   # the same code, to see it run
    python benchmarks/device.py --part generator                         # `Generator` itself, by batch

Purpose: (1) applying the masks of a batch of 256 at 128,256 tokens, beside reading and writing the logits
once (a copy, and a multiplication in place); target: at most 1.03 times.  (2) tokens a second of a model of
Llama-3-8B's shape with random weights, constrained beside unconstrained; target: at least 0.99.
Invariant: both loops of (2) launch the same model, draw in the same way (Gumbel noise) and read the tokens
back each step; the constrained one also advances the automata, fills the table of masks and applies them.
Rounds alternate, and medians are compared.  Texts are of several schemas that can't end within a run.
Design: the model is written out (device_model.py), with a cache of fixed length, so that a step is one CUDA
graph: where launching takes the CPU's time, it is no measure of what the masks add to it.  `--transformers`
measures `model.generate` with the logits processor as well.
Rejected: a pretrained model (random weights write the longest tails of states, which is what tables fear).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import tokenform as tf
from tokenform.masking import MaskTable, unpack_mask
from tokenform_bench.tables import number, save, text_table

sys.path.insert(0, str(Path(__file__).resolve().parent))
from device_model import LLAMA_3_8B, TINY, Shape, StepModel, hugging_face

RESULTS = Path(__file__).resolve().parent / "results"
QUEUED = 100_000_000
"""Clock cycles that the device waits before timed calls: they queue up, so that launching is not timed."""
ENDLESS = 10_000_000
"""Items that an array must have: no text of a run ends."""

SCHEMAS: tuple[Any, ...] = (
    {"type": "string"},
    {"type": "string", "maxLength": 60},
    {"type": "integer"},
    {"enum": [f"choice-{i}" for i in range(40)]},
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 30},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]{2,8}$"}},
            "address": {
                "type": "object",
                "properties": {
                    "street": {"type": "string"},
                    "zip": {"type": "string", "pattern": "^[0-9]{5}$"},
                },
                "required": ["street", "zip"],
                "additionalProperties": False,
            },
        },
        "required": ["name", "age", "tags", "address"],
        "additionalProperties": False,
    },
    {"type": "object", "additionalProperties": {"type": ["number", "boolean", "null"]}},
)


def vocabulary_of(size: int) -> tf.Vocabulary:
    """So many tokens: Tekken's where it is installed, else bytes and made-up words; the last one is EOS."""
    try:
        from tokenform_bench.vocabulary import tekken

        found = tekken()
        tokens = [b"" if i in set(found.special) else t for i, t in enumerate(found.tokens[: size - 1])]
    except tf.TokenformError:
        tokens = made_up(size - 1)
    tokens += [b""] * (size - 1 - len(tokens))
    return tf.Vocabulary([*tokens, b"</s>"], eos=[size - 1], special=[size - 1])


def made_up(count: int) -> list[bytes]:
    """All bytes, then words of letters, digits and JSON's punctuation in the proportions of real ones."""
    import random

    rng, letters = random.Random(0), "etaoinshrdlucmfwypvbgkjqxz"
    heads = [b" ", b" ", b"", b"", b'"', b', "', b'": "', b"\n  ", b"_", b"-"]
    found = dict.fromkeys(bytes([b]) for b in range(256))
    while len(found) < count:
        word = "".join(rng.choices(letters, range(26, 0, -1), k=rng.randint(1, 9)))
        word = rng.choice([word, word, word.title(), word.upper(), str(rng.randint(0, 99_999))])
        found[rng.choice(heads) + word.encode()] = None
    return list(found)[:count]


def constraints(vocabulary: tf.Vocabulary) -> list[tf.TokenAutomaton]:
    """The schemas, each as an array that must have more items than a run writes."""
    endless = ({"type": "array", "items": schema, "minItems": ENDLESS} for schema in SCHEMAS)
    return [tf.json_schema(schema).compile(vocabulary) for schema in endless]


class Clock:
    """Seconds of device work: by events around calls that wait in a queue on a GPU, by the wall on a CPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def sync(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def each(self, call: Callable[[], Any], repeats: int) -> float:
        """Median seconds of a call, of so many after a few to warm up."""
        for _ in range(min(5, repeats)):
            call()
        self.sync()
        if self.device.type != "cuda":
            times = []
            for _ in range(repeats):
                begun = time.perf_counter()
                call()
                times.append(time.perf_counter() - begun)
            return statistics.median(times)
        torch.cuda._sleep(QUEUED)
        events = [
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            for _ in range(repeats)
        ]
        for begin, end in events:
            begin.record()
            call()
            end.record()
        self.sync()
        return statistics.median(begin.elapsed_time(end) for begin, end in events) / 1e3


def states_along(automaton: tf.TokenAutomaton, count: int, seed: int) -> list[int]:
    """States of a random text."""
    generator, states = torch.Generator().manual_seed(seed), [automaton.start]
    while len(states) < count:
        allowed = automaton.allowed_tokens(states[-1])
        pick = int(torch.randint(len(allowed), (), generator=generator))
        states.append(automaton.advance(states[-1], int(allowed[pick])))
    return states


def measure_apply(
    options: argparse.Namespace, vocabulary: tf.Vocabulary, clock: Clock
) -> list[dict[str, Any]]:
    """Applying masks beside reading and writing the logits once."""
    automata = constraints(vocabulary)
    walks = [(a, s) for i, a in enumerate(automata) for s in states_along(a, 50, i)]
    inside = automata[0].step_bytes(automata[0].start, b'["')
    kinds: dict[str, list[tuple[tf.TokenAutomaton, int]]] = {
        "in a string (98 % allowed)": [(automata[0], inside)],
        "before a value (few allowed)": [(automata[3], automata[3].start)],
        "mixed states": walks,
    }
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        logits = torch.randn(options.batch, vocabulary.size, device=clock.device, dtype=dtype)
        for name, states in kinds.items():
            table = MaskTable(vocabulary.size, clock.device)
            rows = table.rows([states[i % len(states)] for i in range(options.batch)])
            times = time_apply(logits, table, rows, clock, options.repeats)
            found.append({"dtype": str(dtype).removeprefix("torch."), "masks": name, **times})
    return found


def time_apply(
    logits: torch.Tensor, table: MaskTable, rows: torch.Tensor, clock: Clock, repeats: int
) -> dict[str, float]:
    """Microseconds, and ratios to reading and writing once, of one batch; checked against the reference."""
    masked, other = logits.clone(), torch.empty_like(logits)
    want = unpack_mask(table.masks(rows), logits.shape[1])
    assert torch.equal(table.apply(logits, rows, out=other).isfinite(), want)
    assert torch.equal(table.apply(masked, rows), other)
    found = {
        "copy_us": clock.each(lambda: other.copy_(logits), repeats) * 1e6,
        "mul_us": clock.each(lambda: masked.mul_(1.0), repeats) * 1e6,
        "in_place_us": clock.each(lambda: table.apply(masked, rows), repeats) * 1e6,
        "out_of_place_us": clock.each(lambda: table.apply(logits, rows, out=other), repeats) * 1e6,
    }
    found["in_place_ratio"] = found["in_place_us"] / found["mul_us"]
    found["out_of_place_ratio"] = found["out_of_place_us"] / found["copy_us"]
    return found


class Unconstrained:
    """Draws from the logits as they are."""

    def mask(self, logits: torch.Tensor) -> torch.Tensor:
        return logits

    def took(self, tokens: Sequence[int]) -> None:
        pass


class Constrained:
    """A state for each sequence, and the table of their masks."""

    def __init__(self, automata: Sequence[tf.TokenAutomaton], batch: int, device: torch.device) -> None:
        self.automata = [automata[i % len(automata)] for i in range(batch)]
        self.states = [automaton.start for automaton in self.automata]
        self.table = MaskTable(automata[0].vocabulary.size, device)
        self.host_seconds = 0.0

    def mask(self, logits: torch.Tensor) -> torch.Tensor:
        begun = time.perf_counter()
        rows = self.table.rows(list(zip(self.automata, self.states, strict=True)))
        self.host_seconds += time.perf_counter() - begun
        return self.table.apply(logits, rows)

    def took(self, tokens: Sequence[int]) -> None:
        begun = time.perf_counter()
        pairs = zip(self.automata, self.states, tokens, strict=True)
        self.states = [automaton.advance(state, token) for automaton, state, token in pairs]
        self.host_seconds += time.perf_counter() - begun


def decode(model: StepModel, constraint: Any, steps: int, clock: Clock) -> float:
    """Seconds for so many steps of the batch.  The next pass is launched before its tokens are read back, so
    that the automata move on, and their masks are made, while the device runs the model."""
    on_gpu = clock.device.type == "cuda"
    model.reset()
    host = torch.zeros(model.batch, dtype=torch.long, pin_memory=on_gpu)
    noise = torch.empty_like(model.logits)
    drawn = torch.cuda.Event() if on_gpu else None
    clock.sync()
    begun = time.perf_counter()
    for step in range(steps):
        model.launch()
        if step:
            if drawn is not None:
                drawn.synchronize()
            constraint.took(host.tolist())
        masked = constraint.mask(model.logits)
        noise.exponential_()
        torch.argmax(masked.sub_(noise.log_()), -1, out=model.tokens)
        host.copy_(model.tokens, non_blocking=True)
        if drawn is not None:
            drawn.record()
    clock.sync()
    return time.perf_counter() - begun


def measure_decode(
    options: argparse.Namespace, shape: Shape, vocabulary: tf.Vocabulary, clock: Clock
) -> dict[str, Any]:
    """Tokens a second of the written-out model, unconstrained and constrained in turn."""
    model = StepModel(shape, options.batch, options.context, clock.device, options.steps)
    graph = model.capture()
    automata = constraints(vocabulary)
    decode(model, Constrained(automata, options.batch, clock.device), options.steps, clock)  # warm
    decode(model, Unconstrained(), options.steps, clock)
    seconds: dict[str, list[float]] = {"unconstrained": [], "constrained": []}
    figures, host = None, []
    for _ in range(options.rounds):
        seconds["unconstrained"].append(decode(model, Unconstrained(), options.steps, clock))
        constraint = Constrained(automata, options.batch, clock.device)
        seconds["constrained"].append(decode(model, constraint, options.steps, clock))
        figures, host = vars(constraint.table.figures), [*host, constraint.host_seconds]
    tokens = options.batch * options.steps
    rates = {name: tokens / statistics.median(times) for name, times in seconds.items()}
    pairs = zip(seconds["unconstrained"], seconds["constrained"], strict=True)
    return {
        "loop": "written out, " + ("CUDA graph" if graph else "launched by the kernel"),
        "tokens_per_second": rates,
        "ratio": statistics.median(free / bound for free, bound in pairs),
        "seconds": seconds,
        "host_ms_per_step": 1e3 * statistics.median(host) / options.steps,
        "table": figures,
    }


def measure_transformers(
    options: argparse.Namespace, shape: Shape, vocabulary: tf.Vocabulary, clock: Clock
) -> dict[str, Any]:
    """Tokens a second of `model.generate`, with and without the logits processor."""
    from tokenform.integrations.transformers import GrammarLogitsProcessor

    model = hugging_face(shape, options.context, clock.device)
    prompt = torch.zeros(options.batch, 4, dtype=torch.long, device=options.device)
    wanted: dict[str, Any] = {
        "max_new_tokens": options.steps,
        "min_new_tokens": options.steps,
        "do_sample": True,
    }
    wanted |= {"top_k": 0, "eos_token_id": vocabulary.eos[0], "pad_token_id": 0}
    wanted["attention_mask"] = torch.ones_like(prompt)
    rules = [{"type": "array", "items": schema, "minItems": ENDLESS} for schema in SCHEMAS]
    count = next(n for n in range(len(rules), 0, -1) if options.batch % n == 0)
    processor = GrammarLogitsProcessor(rules[:count], vocabulary)
    seconds: dict[str, list[float]] = {"unconstrained": [], "constrained": []}
    for round_ in range(options.rounds + 1):
        for name, extra in (("unconstrained", {}), ("constrained", {"logits_processor": [processor]})):
            clock.sync()
            begun = time.perf_counter()
            model.generate(prompt, **wanted, **extra)
            clock.sync()
            if round_:  # the first is to warm up
                seconds[name].append(time.perf_counter() - begun)
    tokens = options.batch * options.steps
    rates = {name: tokens / statistics.median(times) for name, times in seconds.items()}
    pairs = zip(seconds["unconstrained"], seconds["constrained"], strict=True)
    ratio = statistics.median(free / bound for free, bound in pairs)
    return {"loop": "transformers' generate", "tokens_per_second": rates, "ratio": ratio, "seconds": seconds}


def measure_generator(
    options: argparse.Namespace, shape: Shape, vocabulary: tf.Vocabulary, clock: Clock
) -> list[dict[str, Any]]:
    """Tokens a second of `Generator` itself, plain and with drafts, beside `model.generate` unconstrained.

    Texts go on beyond the tokens that are timed; rounds alternate, each with prompts of its own.
    """
    model, found = hugging_face(shape, max(options.context, 4096), clock.device), []
    fields = {name: {"type": "string", "minLength": 8, "maxLength": 2000} for name in ("name", "comment")}
    grammar = tf.json_schema({"type": "object", "properties": fields, "required": list(fields)})
    for batch in options.batches:
        writers = {
            f"{name}{', compiled' * compiled}": tf.Generator(
                model, vocabulary, drafter=drafter, batch_size=batch, sampler=tf.Local(1.0), compile=compiled
            )
            for name, drafter in (("plain", None), ("auto", "auto"))
            for compiled in (False, True)[: 1 + options.compile]
        }
        seconds: dict[str, list[float]] = {name: [] for name in ("free", *writers)}
        for turn in range(options.rounds + 1):
            prompts = torch.randint(0, 200, (batch, 8), generator=torch.Generator().manual_seed(turn))
            for name in seconds:
                clock.sync()
                begun = time.perf_counter()
                if name == "free":
                    ids = prompts.to(clock.device)
                    steps = options.steps
                    model.generate(ids, max_new_tokens=steps, min_new_tokens=steps, do_sample=True, top_k=0)
                else:
                    write_tokens(writers[name], prompts.tolist(), grammar, options.steps * batch)
                clock.sync()
                if turn:  # the first round is to warm up
                    seconds[name].append(time.perf_counter() - begun)
        tokens = batch * options.steps
        rates = {name: tokens / statistics.median(times) for name, times in seconds.items()}
        found.append({"batch": batch, "tokens_per_second": rates, "seconds": seconds})
    return found


def write_tokens(writer: tf.Generator, prompts: list[list[int]], grammar: tf.Grammar, count: int) -> None:
    """The first tokens of a batch of texts."""
    rows = [row for prompt in prompts for row in writer.rows(prompt, grammar, 1, 0, 3000)]
    run = writer.decoder(writer.sampler, len(rows)).run(rows, len(rows))
    for written, _ in enumerate(run, 1):
        if written >= count:
            break
    run.close()


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--size", type=int, default=128_256, help="tokens of the vocabulary")
    parser.add_argument("--context", type=int, default=512, help="tokens that the cache holds a sequence")
    parser.add_argument("--steps", type=int, default=128, help="tokens a sequence writes in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=200, help="timed calls of a kernel")
    parser.add_argument("--part", default="apply,decode,generator", help="of apply, decode, generator")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64, 256], help="of the generator")
    parser.add_argument("--transformers", action="store_true", help="measure model.generate too")
    parser.add_argument("--compile", action="store_true", help="the generator with compile=True, too")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.tiny:
        options.batch, options.size, options.context, options.steps = 6, 2_048, 48, 12
        options.rounds, options.repeats, options.batches = 2, 3, [1, 4]
    return options


def hardware(device: torch.device) -> dict[str, Any]:
    import importlib.metadata as versions

    found: dict[str, Any] = {
        "torch": torch.__version__,
        "interpreted": os.environ.get("TRITON_INTERPRET") == "1",
    }
    for name in ("triton", "transformers"):
        with contextlib.suppress(versions.PackageNotFoundError):
            found[name] = versions.version(name)
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        found |= {"gpu": properties.name, "gpu_gib": properties.total_memory >> 30}
    return found


def show(found: dict[str, Any]) -> None:
    if found["apply"]:
        keys = ("copy_us", "mul_us", "in_place_us", "in_place_ratio", "out_of_place_us", "out_of_place_ratio")
        header = [
            "logits, masks",
            "copy µs",
            "× 1 in place µs",
            "mask in place",
            "ratio",
            "mask to out",
            "ratio",
        ]
        rows = [[f"{r['dtype']}, {r['masks']}", *(number(r[k]) for k in keys)] for r in found["apply"]]
        print(text_table(header, rows))
        worst = max(r["in_place_ratio"] for r in found["apply"])
        print(
            f"masks in place: at most {worst:.3f} times reading and writing the logits once (target 1.03)\n"
        )
    for run in found["decode"]:
        rates = ", ".join(f"{name} {rate:,.0f} tokens/s" for name, rate in run["tokens_per_second"].items())
        print(f"{run['loop']}: {rates}: {100 * run['ratio']:.2f} % (target 99 %)")
        if "table" in run:
            print(f"  host work {run['host_ms_per_step']:.2f} ms a step; table {run['table']}")


def show_generator(runs: list[dict[str, Any]]) -> None:
    if runs:
        names = list(runs[0]["tokens_per_second"])
        rows = [[str(r["batch"]), *(number(r["tokens_per_second"][n]) for n in names)] for r in runs]
        print(text_table(["batch", *(f"{name} tokens/s" for name in names)], rows))


def main() -> int:
    options = read_options()
    device = torch.device(options.device)
    clock, vocabulary = Clock(device), vocabulary_of(options.size)
    shape = (TINY if options.tiny else LLAMA_3_8B).with_vocabulary(options.size)
    parts = options.part.split(",")
    found: dict[str, Any] = {"hardware": hardware(device), "apply": [], "decode": [], "generator": []}
    with torch.inference_mode():
        if "apply" in parts:
            found["apply"] = measure_apply(options, vocabulary, clock)
        if "decode" in parts:
            found["decode"].append(measure_decode(options, shape, vocabulary, clock))
        if options.transformers:
            found["decode"].append(measure_transformers(options, shape, vocabulary, clock))
    if "generator" in parts:
        found["generator"] = measure_generator(options, shape, vocabulary, clock)
    show(found)
    show_generator(found["generator"])
    settings = {k: v for k, v in vars(options).items() if k != "results"}
    print(f"results: {save(options.results, 'device', {**found, 'options': settings, 'command': sys.argv})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
