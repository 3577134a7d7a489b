"""The whole of vLLM on the CPU, by its own Python (`make hosts-engine`): engine, and server over HTTP."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import jsonschema
import numpy as np
import pytest

HERE = Path(__file__).parent
PYTHON = os.environ.get("TOKENFORM_VLLM_PYTHON", str(HERE.parents[1] / ".hosts-vllm" / "bin" / "python"))
CLIENTS = os.environ.get(
    "TOKENFORM_CLIENTS_PYTHON", str(HERE.parents[1] / ".hosts-clients" / "bin" / "python")
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not Path(PYTHON).exists(), reason=f"no {PYTHON}; `make hosts-engine` installs it (6 GB)"
    ),
]
SCHEMA = {
    "type": "object",
    "properties": {
        "customer": {"type": "string"},
        "total": {"type": "number", "multipleOf": 0.5},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 2},
    },
    "required": ["customer", "total", "tags"],
    "additionalProperties": False,
}
PROMPT = "The order has the number A-2041 and was placed by Maria Rossi."


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    made = tmp_path_factory.mktemp("wide")
    subprocess.run([sys.executable, HERE / "wide_heads.py", made], check=True, capture_output=True)
    return str(made)


def settings() -> dict[str, str]:
    found = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    chosen = {
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    return found | chosen


def request(number: int, budget: int) -> dict:
    outputs = [
        {"json": SCHEMA},
        {"regex": r"[A-Z]-\d{4}"},
        {"choice": ["yes", "no"]},
        {"json": {"type": "strin"}},
    ]
    return {"prompt": PROMPT, "max_tokens": budget, "structured_outputs": outputs[number]}


def answers(folder: str, drafts: int, asked: list[dict]) -> list[dict]:
    """What the engine writes."""
    done = subprocess.run(
        [PYTHON, HERE / "vllm_engine.py", folder, "--drafts", str(drafts)],
        input="\n".join(map(json.dumps, asked)),
        capture_output=True,
        text=True,
        env=settings() | {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"},
    )
    found = [json.loads(line[7:]) for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert len(found) == len(asked), done.stderr[-2000:]
    return found


@pytest.mark.parametrize("drafts", [0, 3])
def test_the_engine(folder, drafts):
    asked = [request(0, 36), request(0, 60), request(1, 12), request(2, 12), request(3, 12)]
    if not drafts:  # vLLM has beams without drafts alone
        asked.append(request(1, 12) | {"beams": 3})
    found = answers(folder, drafts, asked)
    for one, answer in zip(asked[:4], found):
        assert answer["reason"] == "stop" and answer["tokens"] <= one["max_tokens"], answer
    for answer in found[:2]:
        jsonschema.validate(json.loads(answer["text"]), SCHEMA)
    assert re.fullmatch(r"[A-Z]-\d{4}", found[2]["text"]) and found[3]["text"] in ("yes", "no")
    assert "/type" in found[4]["error"]
    for answer in found[5:]:
        assert len(answer["texts"]) == len(set(answer["texts"])) == 3, answer
        assert all(re.fullmatch(r"[A-Z]-\d{4}", text) for text in answer["texts"]), answer


def test_drafts_of_the_constraint_change_no_text_and_no_law(folder):
    drawn = {"regex": "(red|rose|ruby|blue)-(one|two)"}
    asked = [
        *(request(number, budget) for number, budget in ((0, 36), (0, 60), (1, 12), (2, 12))),
        {"prompt": PROMPT, "max_tokens": 24, "structured_outputs": drawn, "n": 800},
    ]
    plain, drafted = (answers(folder, drafts, asked) for drafts in (0, 6))
    assert drafted[:4] == plain[:4]
    first, second = (np.array(one[4]["texts"]) for one in (plain, drafted))
    assert len(set(first)) >= 3
    both, random = np.concatenate([first, second]), np.random.default_rng(0)
    shuffled = [apart(*np.split(random.permutation(both), 2)) for _ in range(1000)]
    assert apart(first, second) <= max(shuffled)  # one run of a thousand fails where the laws are the same


def apart(first: np.ndarray, second: np.ndarray) -> float:
    """The total variation between two equally large samples."""
    counts = [Counter(one.tolist()) for one in (first, second)]
    return sum(abs(counts[0][text] - counts[1][text]) for text in counts[0] | counts[1]) / (2 * len(first))


FAULTY = """
from tokenform.integrations import grammar_compiler, request_matcher

MARKED = []


class PanicException(BaseException):
    pass


def register():
    compiled, begin = grammar_compiler.GrammarCompiler.automaton, request_matcher.RequestMatcher.begin

    def automaton(self, kind, source, **options):
        made = compiled(self, kind, source, **options)
        if source.startswith("fault"):
            MARKED.append(made)
        return made

    def broken(self):
        if any(self._automaton is one for one in MARKED):
            raise PanicException("injected")
        return begin(self)

    grammar_compiler.GrammarCompiler.automaton, request_matcher.RequestMatcher.begin = automaton, broken
"""
"""A plug-in of vLLM's that lets texts of patterns that begin with "fault" fail at their first token."""


def faulty(folder: Path) -> str:
    """A folder for PYTHONPATH from which vLLM loads the plug-in above in each of its processes."""
    (folder / "faulty_plugin.py").write_text(FAULTY)
    about = folder / "faulty_plugin-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty-plugin\nVersion: 0\n")
    (about / "entry_points.txt").write_text("[vllm.general_plugins]\nfaulty = faulty_plugin:register\n")
    return str(folder)


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [
        PYTHON,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        folder,
        "--served-model-name",
        "m",
    ]
    command += ["--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager"]
    command += ["--max-model-len", "1024", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    command += [
        "--tool-strict-level",
        "parameter",
    ]  # else vLLM leaves arguments free where strict is not said
    with open(Path(folder) / "server.log", "w") as log:
        env = settings() | {"PYTHONPATH": faulty(tmp_path_factory.mktemp("faulty"))}
        process = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(600):
            time.sleep(1)
            assert process.poll() is None, (Path(folder) / "server.log").read_text()[-3000:]
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
                break
            except OSError:
                continue
        yield f"http://127.0.0.1:{port}/v1/chat/completions"
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def post(url: str, **body) -> tuple[int, dict]:
    body = {"model": "m", "messages": [{"role": "user", "content": PROMPT}], "temperature": 0} | body
    asked = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked, timeout=300) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_schema_over_http(server):
    wanted = {"type": "json_schema", "json_schema": {"name": "order", "schema": SCHEMA, "strict": True}}
    status, answer = post(server, response_format=wanted, max_tokens=40)
    assert status == 200, answer
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "stop" and answer["usage"]["completion_tokens"] <= 40
    jsonschema.validate(json.loads(choice["message"]["content"]), SCHEMA)


def test_what_is_wrong_is_a_400_with_its_place_and_the_server_stays_up(server):
    broken = {"type": "object", "properties": {"a": {"type": "strin"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "order", "schema": broken}}
    status, answer = post(server, response_format=wanted, max_tokens=40)
    assert status == 400 and "/properties/a" in json.dumps(answer)
    status, answer = post(server, structured_outputs={"json": SCHEMA}, max_tokens=5)
    assert status == 400 and "max_tokens" in json.dumps(answer)
    status, answer = post(server, structured_outputs={"choice": ["yes", "no"]}, max_tokens=5)
    assert status == 200 and answer["choices"][0]["message"]["content"] in ("yes", "no")


def test_a_panic_ends_one_request_and_leaves_the_server_up(server):
    good = {"structured_outputs": {"regex": "[a-f]{9}"}, "max_tokens": 20}
    for _ in range(2):
        status, answer = post(server, structured_outputs={"regex": "fault[0-9]{9}"}, max_tokens=20)
        assert status >= 500 or answer["choices"][0]["finish_reason"] not in ("stop", "length"), answer
        status, answer = post(server, **good)
        assert status == 200 and len(answer["choices"][0]["message"]["content"]) == 9, answer


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_tool_choice(server, choice):
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["c", "f"]}},
        "required": ["city", "unit"],
        "additionalProperties": False,
    }
    tool = {"type": "function", "function": {"name": "weather", "parameters": schema}}
    status, answer = post(server, tools=[tool], tool_choice=choice, max_tokens=120)
    assert status == 200, answer
    calls = answer["choices"][0]["message"]["tool_calls"]
    assert calls
    for call in calls:
        assert call["function"]["name"] == "weather"
        jsonschema.validate(json.loads(call["function"]["arguments"]), schema)


@pytest.mark.skipif(not Path(CLIENTS).exists(), reason=f"no {CLIENTS}; `make hosts-engine` installs it")
def test_the_clients(server):
    url = server.removesuffix("/chat/completions")
    done = subprocess.run(
        [CLIENTS, HERE / "vllm_clients.py", url, "m"],
        env=settings(),
        capture_output=True,
        text=True,
        timeout=800,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("check ")]
    found = {one["check"]: one["error"] for one in map(json.loads, (line[6:] for line in lines))}
    assert len(found) == 14, done.stderr[-3000:]
    assert not {name: error for name, error in found.items() if error}
