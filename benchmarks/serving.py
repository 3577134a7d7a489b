"""`tokenform serve` beside `transformers serve` and vLLM: the same model, 32 requests at once, in turns.

    python benchmarks/serving.py --transformers PYTHON --vllm PYTHON                  # the built-in model
    python benchmarks/serving.py --transformers PYTHON --vllm PYTHON --vocabulary 131072   # random

Purpose: constrained tokens a second, and what a constraint adds to the time between tokens.  transformers'
server has no constraints, so its figure is of free text.  PYTHON is that of an environment with the server
(`pip install "transformers[serving]"`; `make hosts-engine`).
Invariant: all servers stay up for the whole run and answer one after the other, round by round, so that what
else the machine does falls on all of them alike; figures are medians over the rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tokenform_bench import serve
from warm_start import large_tokenizer

ROOT = Path(__file__).parents[1]
TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
CONCURRENT = 32


def random_model(folder: Path) -> None:
    """A small model with random weights over 131,072 tokens."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=large_tokenizer(), eos_token="<end>")
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        max_position_embeddings=1024,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@dataclass
class Server:
    """One that runs.

    Attributes:
        modes: what it is asked for.
    """

    name: str
    url: str
    model: str
    modes: tuple[str, ...]


@dataclass
class Starting:
    """A server on its way up, at a free port."""

    name: str
    url: str
    modes: tuple[str, ...]
    process: subprocess.Popen[bytes]
    log: Path

    def ready(self) -> Server | None:
        """It, once it names its model; None where it ends before that."""
        for _ in range(900):
            if self.process.poll() is not None:
                print(f"{self.name} ended: {self.log.read_text()[-1500:]}", file=sys.stderr)
                return None
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"{self.url}/v1/models", timeout=10) as got,
            ):
                listed = json.load(got)["data"]
                return Server(self.name, self.url, str(listed[0]["id"]) if listed else "", self.modes)
            time.sleep(1)
        print(f"{self.name} was never ready: {self.log.read_text()[-1500:]}", file=sys.stderr)
        return None

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


def started(name: str, command: list[str], modes: tuple[str, ...], log: Path, **more: str) -> Starting:
    """A server that begins to start."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    offline = {"OMP_NUM_THREADS": str(os.cpu_count()), "HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(log.parent)}
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, "--port", str(port)],
            env={**os.environ, **offline, **more},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    return Starting(name, f"http://127.0.0.1:{port}", modes, process, log)


def measured(server: Server, mode: str, number: int, max_tokens: int) -> serve.Figures:
    """Requests that all come at once."""
    load = serve.Load(
        server.url,
        server.model,
        rate=1e6,
        requests=CONCURRENT,
        modes=(mode,),
        max_tokens=max_tokens,
        seed=1000 * number,
        timeout=600,
    )
    answers = serve.run(load)
    wrong = sorted({answer.error for answer in answers if answer.error})
    if wrong:
        print(f"{server.name}, {mode}: {wrong[0][:300]}", file=sys.stderr)
    (figures,) = serve.figures(answers)
    return figures


def commands(
    folder: str, options: argparse.Namespace
) -> list[tuple[str, list[str], tuple[str, ...], dict[str, str]]]:
    """Name, command, modes and environment of each server."""
    path = {"PYTHONPATH": str(ROOT / "src")}
    both = ("schema", "free")
    listed = [("tokenform", [sys.executable, "-m", "tokenform", "serve", folder], both, path)]
    if options.transformers:
        run = "from transformers.cli.serve import Serve; import typer; typer.run(Serve)"
        plain = [options.transformers, "-c", run, folder, "--device", "cpu", "--dtype", "float32"]
        listed.append(("transformers", plain, ("free",), {"PYTHONPATH": ""}))
        batched = [*plain, "--continuous-batching"]
        listed.append(("transformers, batched", batched, ("free",), {"PYTHONPATH": ""}))
    if options.vllm:
        command = [options.vllm, "-m", "vllm.entrypoints.openai.api_server", "--model", folder]
        command += ["--dtype", "float32", "--max-model-len", "1024", "--host", "127.0.0.1", "--enforce-eager"]
        chosen = {
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "VLLM_PLUGINS": "none",
        }
        listed.append(("vllm-cpu", command, both, {**chosen, "VLLM_NO_USAGE_STATS": "1", "PYTHONPATH": ""}))
    return listed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transformers")
    parser.add_argument("--vllm")
    parser.add_argument("--vocabulary", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as running:
        folder = Path(name) / "model"
        if options.vocabulary:
            random_model(folder)
        else:
            wide = [sys.executable, str(ROOT / "tests" / "hosts" / "wide_heads.py"), str(folder)]
            subprocess.run(wide, check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
        starting = []
        for number, (server, command, modes, more) in enumerate(commands(str(folder), options)):
            one = started(server, command, modes, Path(name) / f"{number}.log", **more)
            running.callback(one.end)
            starting.append(one)
        ready = [server for server in [one.ready() for one in starting] if server is not None]
        print(f"{len(ready)} of {len(starting)} servers are up", file=sys.stderr, flush=True)
        for server in ready:  # transformers lists what its hub's folder has, and serves another
            server.model = str(folder) if server.name.startswith("transformers") else server.model
        found: dict[tuple[str, str], list[serve.Figures]] = {}
        for number in range(options.rounds + 1):
            for server in ready:
                for mode in server.modes:
                    figures = measured(server, mode, number, options.max_tokens)
                    print(number, server.name, figures, file=sys.stderr, flush=True)
                    if number:  # the first round compiles, fills caches and learns costs
                        found.setdefault((server.name, mode), []).append(figures)
        report(found, options)


def report(found: dict[tuple[str, str], list[serve.Figures]], options: argparse.Namespace) -> None:
    """Prints the table, and writes it where it is asked for."""
    lines = [f"vocabulary {options.vocabulary or 2048}, {CONCURRENT} at once, {options.rounds} rounds"]
    lines.append(
        f"{'':<32}{'tokens/s':>10}{'of schema':>11}{'gap p50':>9}{'gap p99':>9}{'token p99':>11}{'valid':>8}"
    )
    for (name, mode), rounds in found.items():
        rate, gap = middle(one.tokens_per_second for one in rounds), [one.between for one in rounds]
        valid = (
            ""
            if mode == "free"
            else f"{sum(one.valid or 0 for one in rounds)}/{sum(one.requests for one in rounds)}"
        )
        own = found[("tokenform", "schema")]
        ratio = statistics.median(a.tokens_per_second / b.tokens_per_second for a, b in zip(own, rounds))
        lines.append(
            f"{name + ', ' + mode:<32}{rate:>10.1f}{ratio:>11.2f}{middle(g[0] for g in gap):>9.1f}"
            f"{middle(g[1] for g in gap):>9.1f}{middle(one.a_token[1] for one in rounds):>11.1f}{valid:>8}"
        )
    pairs = list(zip(found[("tokenform", "schema")], found[("tokenform", "free")]))
    for what, values in (
        ("between chunks", [a.between[1] / b.between[1] for a, b in pairs]),
        ("a token", [a.a_token[1] / b.a_token[1] for a, b in pairs]),
    ):
        lines.append(f"p99 {what}, with constraints of without: {statistics.median(values):.2f}")
    text = "\n".join(lines)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


def middle(values: Iterable[float]) -> float:
    return statistics.median(list(values))


if __name__ == "__main__":
    main()
