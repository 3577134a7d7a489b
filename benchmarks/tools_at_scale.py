"""Tools by the hundred: a new list, the same again, and one tool dropped, added or changed.

    python benchmarks/tools_at_scale.py [--counts 10 50 100 200 500 10000] [--tools FILE] [--rounds 3]
    python benchmarks/tools_at_scale.py --tags [--counts 300]
    python benchmarks/tools_at_scale.py --serve 2000

Each figure is CPU milliseconds of one thread for front end, compile and first mask together, the least of the
rounds, over a vocabulary of bytes and words.  MB: the memory that the new list adds to the process.  Beside
it XGrammar's structural tags, where it is installed (compile alone).
--tags: the same lists as JSON texts of structural tags, a tag for each tool, as vLLM has them of a request.
--serve: so many requests to a server in a process of its own, as `tokenform serve` runs it, each with 300
tools of which one has changed, and in turns with them as many without tools, as streams.  Printed: the median
of the differences until the first event is here, in time and in the server's CPU.
Masks of a list that was put together from kept parts are compared with those of a fresh process, which has
none: along each call's text, bit by bit.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import hashlib
import json
import lzma
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tokenform as tf

SHARED = Path(__file__).parents[1] / "../shared/data/tool-calls-dev.jsonl.xz"
WORDS = [f" {a}{b}" for a in ("get", "set", "list", "find", "make") for b in ("", "s", "er", "ing", "ed")]


def vocabulary() -> tf.Vocabulary:
    """Bytes, words, and an end."""
    return tf.Vocabulary(
        [*(bytes([byte]) for byte in range(256)), b"", *(word.encode() for word in WORDS)], eos=[256]
    )


def known(path: Path) -> list[dict[str, Any]]:
    """Functions as BFCL has them, each once."""
    found: dict[str, dict[str, Any]] = {}
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            for tool in json.loads(line)["tools"]:
                found.setdefault(tool["function"]["name"], tool)
    return list(found.values())


def new(base: list[dict[str, Any]], count: int, seed: int) -> list[dict[str, Any]]:
    """So many tools that nobody has seen: other names, and one argument more."""
    made = []
    for number in range(count):
        tool = copy.deepcopy(base[number % len(base)])
        function = tool["function"]
        function["name"] = f"{function['name']}_{seed}_{number}"
        parameters = function.setdefault("parameters", {"type": "object"})
        parameters.setdefault("properties", {})[f"note_{seed}_{number}"] = {"type": "string"}
        made.append(tool)
    return made


def lists(base: list[dict[str, Any]], count: int, seed: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A new list, and what becomes of it."""
    tools = new(base, count, seed)
    yield "new", tools
    yield "same", copy.deepcopy(tools)
    yield "dropped", copy.deepcopy(tools[1:])
    yield "added", copy.deepcopy([*tools, *new(base, 1, seed + 10_000)])
    changed = copy.deepcopy(tools)
    changed[count // 2]["function"]["parameters"]["properties"]["more"] = {"type": "integer"}
    yield "changed", changed


def tagged(tools: list[dict[str, Any]]) -> str:
    """The list as a structural tag."""

    def tag(tool: dict[str, Any]) -> dict[str, Any]:
        function = tool["function"]
        return {
            "type": "tag",
            "begin": f'<tool_call>\n{{"name": "{function["name"]}", "arguments": ',
            "content": {"type": "json_schema", "json_schema": function["parameters"]},
            "end": "}\n</tool_call>",
        }

    form = {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": [tag(tool) for tool in tools]}
    return json.dumps({"type": "structural_tag", "format": form})


def begun(asked: list[dict[str, Any]] | str, over: tf.Vocabulary) -> tf.TokenAutomaton:
    """The automaton of a list, or of its structural tag, its first mask made."""
    if isinstance(asked, str):
        grammar = tf.tool_formats.structural_tag(asked)
    else:
        grammar = tf.tools(asked, format="hermes", tool_choice="required")
    automaton = grammar.compile(over)
    automaton.mask(automaton.start)
    return automaton


def masks(asked: list[dict[str, Any]] | str, names: list[str]) -> str:
    """A hash of the masks along the beginnings of calls."""
    automaton, found = begun(asked, vocabulary()), hashlib.sha256()
    for name in names:
        state = automaton.start
        for byte in f'<tool_call>\n{{"name": "{name}", "arguments": {{"'.encode():
            found.update(automaton.mask(state).tobytes())
            state = automaton.advance(state, byte)
        found.update(automaton.mask(state).tobytes())
    return found.hexdigest()


def fresh(asked: list[dict[str, Any]] | str, names: list[str]) -> str:
    """The same in a process that has made nothing before."""
    program = (
        f"import json, sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import tools_at_scale as t; "
        "print(t.masks(*json.load(sys.stdin)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps([asked, names]), capture_output=True, text=True
    )
    return ran.stdout.strip() or ran.stderr[-500:]


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def xgrammar(tools: list[dict[str, Any]]) -> float | None:
    """Seconds of CPU of XGrammar's structural tag; None: it is not installed."""
    try:
        import xgrammar as xgr
    except ImportError:
        return None
    words = [bytes([byte]).decode("latin-1") for byte in range(256)] + ["</s>", *WORDS]
    info = xgr.TokenizerInfo(words, stop_token_ids=[256])
    compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    text = tagged(tools)
    started = time.process_time()
    compiler.compile_structural_tag(text)
    return time.process_time() - started


def serve(base: list[dict[str, Any]], count: int, tools: int = 300) -> None:
    """Times the first event of requests with tools beside those without, in turns."""
    import httpx

    listed, rng, kind = new(base, tools, 3), random.Random(0), {"content-type": "application/json"}
    plain = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4, "stream": True}
    taken: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    changed: dict[str, Any] = {}
    command = [sys.executable, str(Path(__file__)), "--listen"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        with httpx.Client(base_url=server.stdout.readline().strip(), timeout=600) as client:
            for number in range(count + 5):
                changed.pop(f"turn_{number - 1}", None)  # so that bodies stay as long as they are
                changed = rng.choice(listed)["function"]["parameters"]["properties"]
                changed[f"turn_{number}"] = {"type": "integer"}
                for with_tools in (True, False):
                    body = {**plain, "show_schema": False, **({"tools": listed} if with_tools else {})}
                    data = json.dumps(body).encode()
                    time.sleep(0.005)  # the last answer's threads have ended
                    began = time.perf_counter(), _cpu_seconds(server.pid)
                    with client.stream("POST", "/v1/chat/completions", content=data, headers=kind) as answer:
                        assert answer.status_code == 200, answer.read()
                        lines = answer.iter_lines()
                        next(lines)
                        ended = time.perf_counter(), _cpu_seconds(server.pid)
                        list(lines)
                    if number >= 5:  # the first make what all have
                        taken[with_tools].append((ended[0] - began[0], ended[1] - began[1]))
        server.kill()
    print(f"{count} requests with {tools} tools, one changed in each; ms until the first event")
    for at, what in enumerate(("time", "CPU")):
        pairs = zip(taken[True], taken[False], strict=True)
        later = sorted(1e3 * (one[at] - other[at]) for one, other in pairs)
        quarters = [later[count * quarter // 4] for quarter in (1, 2, 3)]
        without = 1e3 * sorted(other[at] for other in taken[False])[count // 2]
        print(
            f"{what:>5}: {quarters[1]:.2f} later than without (middle half {quarters[0]:.2f} to "
            f"{quarters[2]:.2f}; without {without:.1f})"
        )


def listen() -> None:
    """Serves as `tokenform serve` does, and prints the address."""
    import uvicorn

    from tokenform.frontends.garbage import serve_from_here
    from tokenform.server import Engine, create_app
    from tokenform.server.connections import Connection

    # the built-in model reads 1,024 tokens: so many tools are not shown to it, and prompts are the same
    engine = Engine(batch_size=1, tool_format="hermes", format_prompt=lambda prompt, grammar: "Hello\n")
    options: dict[str, Any] = {"log_level": "error", "http": Connection, "access_log": False}
    config = uvicorn.Config(create_app(engine, playground=False), port=0, **options)
    serve_from_here()
    listening = config.bind_socket()
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run(sockets=[listening])


def _cpu_seconds(pid: int) -> float:
    """Seconds of CPU that a process's threads have had."""
    nanoseconds = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            nanoseconds += int((thread / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--counts", nargs="*", type=int, default=[10, 50, 100, 200, 500, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tools", type=Path, default=SHARED)
    parser.add_argument("--beside", type=int, default=200, help="most tools that XGrammar is given")
    parser.add_argument("--tags", action="store_true", help="of structural tags")
    parser.add_argument("--listen", action="store_true", help="be that server")
    parser.add_argument("--serve", type=int, metavar="REQUESTS", help="times a server instead")
    given = parser.parse_args()
    if given.listen:
        listen()
        return
    base, over = known(given.tools), vocabulary()
    if given.serve:
        serve(base, given.serve)
        return
    asked: Callable[[list[dict[str, Any]]], list[dict[str, Any]] | str] = tagged if given.tags else list
    begun(asked(new(base, 3, 999)), over)
    kinds = ["new", "same", "dropped", "added", "changed"]
    print(
        f"{'tools':>7}" + "".join(f"{kind:>10}" for kind in kinds) + f"{'MB':>8}{'XGrammar':>10}   ms of CPU"
    )
    for count in given.counts:
        least: dict[str, float] = {}
        size = 0
        for number in range(given.rounds if count <= 1000 else 1):
            held = []
            before = resident()
            for kind, tools in lists(base, count, 7 * number + count):
                given_list = asked(tools)
                started = time.process_time()
                held.append(begun(given_list, over))
                taken = time.process_time() - started
                least[kind] = min(least.get(kind, taken), taken)
                if kind == "new":
                    size = resident() - before
        rival = xgrammar(new(base, count, 1)) if count <= given.beside else None
        print(
            f"{count:>7}"
            + "".join(f"{1e3 * least[kind]:>10.2f}" for kind in kinds)
            + f"{size / 1e6:>8.0f}"
            + (f"{1e3 * rival:>10.0f}" if rival is not None else f"{'-':>10}"),
            flush=True,
        )
    rng, same, compared = random.Random(0), 0, 0
    for _, tools in lists(base, 60, 5):
        names = [tool["function"]["name"] for tool in rng.sample(tools, 20)]
        compared += 1
        same += masks(asked(tools), names) == fresh(asked(tools), names)
    print(f"masks: {same} of {compared} lists as in a fresh process, 20 calls each")


if __name__ == "__main__":
    main()
