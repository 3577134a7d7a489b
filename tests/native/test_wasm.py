"""The module for JavaScript: its masks are Python's, its size is bounded, it runs in a browser."""

from __future__ import annotations

import gzip
import http.server
import json
import queue
import re
import shutil
import struct
import subprocess
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .cases import EOS, ROOT, TOKENS, built, cases

MODULE = "tokenform.wasm"
SCRIPT = ROOT / "rust" / "wasm" / "tokenform.js"
MOST_BYTES = 3 << 20
"""Of the compressed module."""


def test_the_module_is_small() -> None:
    assert len(gzip.compress(built(MODULE).read_bytes(), 6)) < MOST_BYTES


def test_the_script_calls_what_the_header_declares() -> None:
    header = (ROOT / "rust" / "capi" / "include" / "tokenform.h").read_text()
    declared = set(re.findall(r"(?m)^\w.*\btokenform_(\w+)\(", header))
    named = r'(?:call|handle|listed|said)\((?:Uint\w+, )?"(\w+)"|#text\("(\w+)"\)|#grammar\("(\w+)"'
    called = {
        call or text or f"grammar_{grammar}" for call, text, grammar in re.findall(named, SCRIPT.read_text())
    }
    assert called <= declared and len(called) > 20


@cache
def compiled(path: Path) -> tuple[Any, Any]:
    """The engine and the module in it; compiling takes seconds."""
    wasmtime = pytest.importorskip("wasmtime", reason="pip install wasmtime")
    engine = wasmtime.Engine()
    return engine, wasmtime.Module.from_file(engine, str(path))


@pytest.fixture(scope="module", autouse=True)
def let_go() -> Iterator[None]:
    """The compiled module goes before the interpreter does, which wasmtime's destructors don't survive."""
    yield
    compiled.cache_clear()


class Module:
    """The module in wasmtime, called as the script does."""

    def __init__(self, path: Path) -> None:
        wasmtime = pytest.importorskip("wasmtime", reason="pip install wasmtime")
        engine, module = compiled(path)
        assert list(module.imports) == []
        self.store = wasmtime.Store(engine)
        self.exports: Any = wasmtime.Instance(self.store, module, []).exports(self.store)
        self.trap: type[Exception] = wasmtime.Trap

    def __call__(self, name: str, *values: int) -> int:
        answer: int = self.exports[f"tokenform_{name}"](self.store, *values)
        return answer

    def put(self, data: bytes) -> int:
        place = self("reserve", len(data))
        self.exports["memory"].write(self.store, data, place)
        return place

    def read(self, start: int, length: int) -> bytes:
        data: bytes = bytes(self.exports["memory"].read(self.store, start, start + length))
        return data

    def error(self) -> str:
        return self.read(self("error_kind"), 40).split(b"\0")[0].decode()


def masks(module: Module, grammar: int, vocabulary: int, tokens: list[int]) -> str:
    """The sum over the masks along the tokens, or the kind of the error."""
    width, total = -(-len(TOKENS) // 32), 0xCBF29CE484222325
    if not grammar:
        return module.error()
    automaton = module("automaton_new", grammar, vocabulary, 0)
    matcher, out, one = (
        module("matcher_new", automaton, -1),
        module("reserve", width * 4),
        module("reserve", 4),
    )
    for token in [None, *tokens]:
        if token is not None:
            module.exports["memory"].write(module.store, struct.pack("I", token), one)
            assert module("matcher_accept", matcher, one, 1) == 0
        assert module("matcher_fill_mask", matcher, out, width) == 0
        for word in np.frombuffer(module.read(out, width * 4), np.uint32).tolist():
            total = (total ^ word) * 0x100000001B3 % 2**64
    for kind, handle in (("matcher", matcher), ("automaton", automaton), ("grammar", grammar)):
        module(f"{kind}_free", handle)
    module("release", out, width * 4)
    module("release", one, 4)
    return f"{total:016x}"


def test_masks_are_those_of_python(maskbench: Path) -> None:
    module = Module(built(MODULE))
    lengths, eos = struct.pack(f"{len(TOKENS)}I", *map(len, TOKENS)), module.put(struct.pack("I", EOS))
    text = module.put(b"".join(TOKENS))
    vocabulary = module("vocabulary_new", text, module.put(lengths), len(TOKENS), eos, 1, eos, 1)
    different, seen = [], 0
    for number, (kind, data, tokens, want) in enumerate(cases(maskbench)):
        place = module.put(data)
        if kind == "b":
            grammar = module("grammar_from_bytes", place, len(data))
        else:
            schema = data.index(0)
            rest = len(data) - schema - 1
            grammar = module("grammar_json_schema", place, schema, place + schema + 1, rest)
        if masks(module, grammar, vocabulary, tokens) != want:
            different.append(number)
        module("release", place, len(data))
        seen += 1
    assert different == [] and seen >= 550


def test_a_limit_ends_the_call() -> None:
    module = Module(built(MODULE))
    lengths, eos = (
        module.put(struct.pack(f"{len(TOKENS)}I", *map(len, TOKENS))),
        module.put(struct.pack("I", EOS)),
    )
    vocabulary = module("vocabulary_new", module.put(b"".join(TOKENS)), lengths, len(TOKENS), eos, 1, eos, 1)
    pattern = b"(?=.*a.{9}b)(?=.*c.{8}d).*"
    grammar = module("grammar_regex", module.put(pattern), len(pattern))
    width = -(-len(TOKENS) // 32)
    out = module("reserve", 4 * width)
    limits = module.put(struct.pack("QQI", 2000, 1 << 25, 100))

    def filled(limits: int) -> int:
        automaton = module("automaton_new", grammar, vocabulary, limits)
        return module("matcher_fill_mask", module("matcher_new", automaton, -1), out, width)

    assert filled(0) == 0
    with pytest.raises(module.trap):
        filled(limits)
    assert module("ended") == 0 and module.error() == "LimitExceeded"


TRAPS = """
// a module whose first instance traps in the third call of an entry, where its second works
const encoded = (words) => new TextEncoder().encode(words + "\\0");
const text = (memory, at, words) => new Uint8Array(memory.buffer).set(encoded(words), at);
let made = 0;
WebAssembly.Instance = function () {
  const [memory, number] = [new WebAssembly.Memory({ initial: 1 }), made++];
  let calls = 0, ended = false;
  const trap = () => { throw new WebAssembly.RuntimeError("unreachable"); };
  const made_of_a_pattern = () => (number === 0 && ++calls === 3 ? trap() : 7);
  text(memory, 100, "LimitExceeded"), text(memory, 200, "too many states");
  this.exports = {
    memory,
    tokenform_reserve: () => 1000,
    tokenform_release: () => undefined,
    tokenform_grammar_regex: made_of_a_pattern,
    tokenform_grammar_free: () => undefined,
    tokenform_ended: () => ((ended = true), 0),
    tokenform_error_kind: () => (ended ? 100 : trap()),
    tokenform_error: () => (ended ? 200 : trap()),
  };
};
const { load } = await import(process.argv[1]);
const tokenform = await load(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
const [first] = [tokenform.regex("a"), tokenform.regex("b")];
const said = [];
const told = (call) => { try { call(); said.push("done"); } catch (e) { said.push([e.kind, e.message]); } };
told(() => tokenform.regex("c"));
told(() => first.free());
told(() => tokenform.regex("d").free());
console.log(JSON.stringify([said, made]));
"""


def test_a_limit_is_an_error_and_the_next_call_works() -> None:
    """The script alone, in Node, over a module that traps: the built one is not needed for that."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node here")
    command = [node, "--input-type=module", "-e", TRAPS, SCRIPT.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    said, made = json.loads(done.stdout)
    assert said[0] == ["LimitExceeded", "too many states"]
    assert said[1] == ["EngineError", "an earlier call ended this object; make it again"]
    assert said[2] == "done" and made == 2


PAGE = """<!doctype html><script type="module">
import { load, TokenformError } from "/tokenform.js";
const answers = [];
try {
  const tokenform = await load(fetch("/tokenform.wasm"));
  const bytes = Array.from({ length: 256 }, (_, byte) => new Uint8Array([byte]));
  const vocabulary = tokenform.vocabulary([...bytes, "true", ""], [257]);
  const properties = { ok: { type: "boolean" } };
  const schema = { type: "object", properties, required: ["ok"], additionalProperties: false };
  const grammar = tokenform.jsonSchema(schema, { whitespace: "compact", strings: "canonical" });
  const matcher = grammar.matcher(vocabulary, { maxTokens: 20 });
  answers.push(grammar.report.length, matcher.forcedText);
  matcher.accept([...matcher.forcedTokens]);
  const mask = new Uint32Array(vocabulary.maskWords);
  matcher.fillMask(mask);
  answers.push([...matcher.allowedTokens], (mask[8] >> 0) & 1);
  const twin = matcher.fork();
  answers.push(matcher.validate([256, 125, 257, 1]));
  matcher.accept([256, 125]);
  answers.push(matcher.isAccepting, twin.isAccepting);
  matcher.accept([257]);
  answers.push(matcher.isTerminated, matcher.tokens.length);
  matcher.rollback(2);
  answers.push([...matcher.allowedTokens]);
  try { matcher.accept([0]); } catch (error) { answers.push(error instanceof TokenformError, error.kind); }
  try { tokenform.regex("a("); } catch (error) { answers.push(error.kind); }
  const again = tokenform.grammarFromBytes(tokenform.choice(["é", "yes"]).toBytes());
  answers.push([...again.matcher(vocabulary).allowedTokens]);
  [matcher, twin, grammar, again, vocabulary].forEach((held) => held.free());
} catch (error) { answers.push(String(error)); }
await fetch("/done", { method: "POST", body: JSON.stringify(answers) });
</script>"""
WANT = [
    0,
    '{"ok":',
    [102, 116, 256],
    1,
    3,
    True,
    False,
    True,
    9,
    [125],
    True,
    "TokenRejected",
    "InvalidRegex",
    [121, 195],
]


@pytest.mark.slow
def test_it_runs_in_a_browser(tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("no Chromium here")
    files = {
        "/": ("text/html", PAGE.encode()),
        "/tokenform.js": ("text/javascript", SCRIPT.read_bytes()),
        "/tokenform.wasm": ("application/wasm", built(MODULE).read_bytes()),
    }
    answers: queue.Queue[Any] = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, data = files.get(self.path, ("text/plain", b""))
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", address]
        process = subprocess.Popen([browser, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert answers.get(timeout=120) == WANT
        finally:
            process.terminate()
            process.wait(timeout=30)
            server.shutdown()
