"""The playground's endpoints: what they say is what the engine, the model and independent judges say."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import numpy as np
import pytest

import tokenform as tf

starlette = pytest.importorskip("starlette", reason='pip install "tokenform[serve]"')
pytest.importorskip("httpx", reason='pip install "tokenform[serve]"')

from starlette.applications import Starlette  # noqa: E402
from starlette.testclient import TestClient  # noqa: E402

from tokenform.frontends.byte_vocabulary import byte_vocabulary  # noqa: E402
from tokenform.server import Engine, create_app  # noqa: E402
from tokenform.server.playground import endpoints, queries, routes, running, writing  # noqa: E402

PAGE = Path(endpoints.__file__).parent / "page"
EXAMPLES: list[dict[str, Any]] = json.loads((PAGE / "examples.json").read_text(encoding="utf-8"))
BY_NAME = {example["name"]: example for example in EXAMPLES}


@pytest.fixture(scope="module")
def generator(engine: Engine) -> tf.Generator:
    return engine.generator


@pytest.fixture(scope="module")
def client(generator: tf.Generator) -> TestClient:
    return TestClient(Starlette(routes=routes(generator)), base_url="http://127.0.0.1:8000")


def body(kind: str, source: str, text: str = "", **more: Any) -> dict[str, Any]:
    options = more.pop("options", {})
    return {"constraint": {"kind": kind, "source": source, "options": options}, "text": text, **more}


def of(example: dict[str, Any], **more: Any) -> dict[str, Any]:
    return body(
        example["kind"], example["source"], options=example["options"], prompt=example["prompt"], **more
    )


def events(client: TestClient, name: str, asking: dict[str, Any]) -> list[dict[str, Any]]:
    answer = client.post(f"/playground/api/{name}", json=asking)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return [json.loads(part[6:]) for part in answer.text.split("\n\n") if part.startswith("data: ")]


def test_the_page_is_served_and_runs_no_script_but_its_own(client: TestClient) -> None:
    page = client.get("/playground/")
    policy = page.headers["content-security-policy"]
    assert page.status_code == 200 and "default-src 'none'" in policy and "script-src 'self';" in policy
    assert "unsafe-inline" not in policy + page.text and not re.search(
        r"<script(?![^>]*\bsrc=)|\bon\w+=", page.text
    )
    named = re.findall(r'(?:src|href)="([\w.]+)"', page.text)
    imported = {
        name for file in PAGE.glob("*.js") for name in re.findall(r'"\./([\w.]+)"', file.read_text("utf-8"))
    }
    assert {"style.css", "app.js"} <= {*named}
    for name in {*named, *imported, "examples.json"} - {"tokenform.js"}:  # only where WebAssembly is
        found = client.get(f"/playground/{name}")
        assert found.status_code == 200 and found.headers["x-content-type-options"] == "nosniff", name
    assert client.get("/playground", follow_redirects=False).headers["location"] == "playground/"


@pytest.mark.parametrize("name", ["nothing.js", "..%2fqueries.py", "%2e%2e/queries.py", "__init__.py"])
def test_nothing_else_is_served(client: TestClient, name: str) -> None:
    assert client.get(f"/playground/{name}").status_code == 404


def test_nothing_of_elsewhere_is_loaded() -> None:
    for file in PAGE.iterdir():
        for address in re.findall(r"https?://[\w.:]+", file.read_text(encoding="utf-8")):
            assert re.match(r"http://(127\.0\.0\.1:|www\.w3\.org)", address), (file.name, address)


def test_texts_become_text_nodes_alone() -> None:
    for file in PAGE.glob("*.js"):
        script = file.read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", script
        )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["name"])
def test_examples_are_told_as_the_engine_tells_them(client: TestClient, example: dict[str, Any]) -> None:
    answer = client.post("/playground/api/inspect", json=of(example, text=example["text"]))
    found = answer.json()
    if example["name"] == "A schema that nothing meets":
        assert answer.status_code == 400
        assert (found["error"]["kind"], found["error"]["pointer"]) == (
            "UnsatisfiableSchema",
            "/properties/age",
        )
        return
    assert answer.status_code == 200, answer.text
    constraint = {name: example[name] for name in ("kind", "source", "options")}
    automaton = queries.ConstraintQuery(**constraint).grammar.compile(byte_vocabulary())
    verdict = automaton.check(example["text"].encode())
    if verdict is not None and verdict[0] < len(example["text"]):
        refused = found["refused"]
        assert (refused["offset"], refused["expected"], refused["pointer"]) == verdict
    else:
        assert found["refused"] is None and found["ended"] == (verdict is None)
    assert found["allowed"] >= len(found["tokens"]) > 0 and found["drawing"]["accepting"]


def test_the_state_is_that_after_the_accepted_part(client: TestClient, generator: tf.Generator) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}, "required": ["a"]}
    found = client.post("/playground/api/inspect", json=body("schema", json.dumps(schema), '{"a": 2}')).json()
    automaton = tf.json_schema(schema).compile(generator.vocabulary)
    state = automaton.step_bytes(automaton.start, b'{"a": 2')
    assert found["refused"]["offset"] == found["accepted"] == 7
    assert found["refused"]["pointer"] == "/properties/a"
    assert found["allowed"] == len(automaton.allowed_tokens(state))
    assert (found["distance"], found["forced"]) == (automaton.distance(state), "")


def test_places_are_in_bytes(client: TestClient) -> None:
    found = client.post("/playground/api/inspect", json=body("choices", "é→🎈x", "é→🎈y")).json()
    assert found["accepted"] == len("é→🎈".encode()) and found["forced"] == "x"


def test_another_spelling_is_recognised(client: TestClient) -> None:
    schema = json.dumps(
        {"type": "object", "properties": {"a": True, "b": True}, "additionalProperties": False}
    )
    other = client.post("/playground/api/inspect", json=body("schema", schema, '{"b": 1, "a": 2}')).json()
    wrong = client.post("/playground/api/inspect", json=body("schema", schema, '{"b": 1, "c": 2}')).json()
    assert other["refused"]["spelling"] is True and wrong["refused"]["spelling"] is False


def test_other_constraints_are_compared(client: TestClient) -> None:
    asking = body(
        "schema", "{}", '{"a": 1, "b"', sources=['{"maxProperties": 1}', "true", '{"type": "x"}', "["]
    )
    answer = client.post("/playground/api/reach", json=asking).json()
    assert answer == {"accepted": [7, 12, None, None]}
    asking = body("schema", "{}", sources=["true"] * 61)
    assert client.post("/playground/api/reach", json=asking).status_code == 400


def test_probabilities_are_the_models(client: TestClient, generator: tf.Generator) -> None:
    found = client.post(
        "/playground/api/next", json=body("choices", "new\npaid", prompt="It is paid.")
    ).json()
    grammar = tf.choice(["new", "paid"])
    distribution = np.exp(
        generator.language_model().logprobs([tuple(generator.prompt_ids("It is paid.", grammar))])[0]
    )
    automaton = grammar.compile(generator.vocabulary)
    allowed = automaton.allowed_tokens(automaton.start)
    assert found["mass"] == pytest.approx(float(distribution[allowed].sum()), rel=1e-4)
    for row in found["rows"]:
        assert row["free"] == pytest.approx(float(distribution[row["token"]]), rel=1e-4)
        assert row["allowed"] == (row["token"] in allowed)
        assert row["masked"] == pytest.approx(row["allowed"] * row["free"] / found["mass"], rel=1e-4)
    assert sum(row["masked"] for row in found["rows"]) == pytest.approx(1, abs=1e-6)


def test_a_text_is_written_token_by_token(client: TestClient, generator: tf.Generator) -> None:
    example = BY_NAME["A person"]
    events(client, "write", of(example, seed=4, max_tokens=60))  # the first tells what passes and drafts cost
    *tokens, done = events(client, "write", of(example, seed=3, max_tokens=60))
    (result,) = generator.sample(example["prompt"], json.loads(example["source"]), seed=3, max_tokens=60)
    assert "".join(event["text"] for event in tokens) == done["text"] == result.text
    assert [event["logprob"] for event in tokens] == pytest.approx(result.token_logprobs, abs=1e-4)
    jsonschema.validate(json.loads(done["text"]), json.loads(example["source"]))
    assert {event["origin"] for event in tokens} == {"drafted", "drawn"}
    assert sum(event["origin"] == "drafted" for event in tokens) == done["accepted"]
    assert done["tokens"] == len(tokens) > done["forwards"]


def test_forced_tokens_are_those_without_a_choice(client: TestClient) -> None:
    *tokens, done = events(client, "write", body("regex", "[a-z]{4} shipped today", prompt="A parcel."))
    forced = [event["forced"] for event in tokens]
    before = ["".join(event["text"] for event in tokens[:place]) for place in range(len(tokens))]
    assert done["text"].endswith(" shipped today") and forced[-1] and not forced[0]
    assert forced == [len(text) >= 4 for text in before]


@pytest.mark.parametrize("sampler", [*writing.SAMPLERS])
def test_samplers_draw_accepted_texts(client: TestClient, sampler: str) -> None:
    example = BY_NAME["A small language"]
    asking = of(example, sampler=sampler, n=3, seed=1, max_tokens=12)
    target, *draws, done = events(client, "write", asking)
    assert target["type"] == "target" and 1 <= len(draws) <= 3 and done["forwards"] > 0
    assert all(re.fullmatch(example["source"], draw["text"]) for draw in draws)
    assert sum(draw["weight"] for draw in draws) == pytest.approx(1)
    assert done["exact"] is (sampler == "cars")


def copied(state: dict[str, Any], engine: dict[str, Any], tmp_path: Path) -> dict[str, str]:
    """What the page's last tab shows of a state, by its own script."""
    for name in ("copy.js", "dom.js", "state.js"):
        (tmp_path / name).write_bytes((PAGE / name).read_bytes())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    asking = json.dumps([state, "http://127.0.0.1:8000", engine])
    script = f"import {{ copies }} from './copy.js'; console.log(JSON.stringify(copies(...{asking})))"
    command = ["node", "--input-type=module", "-e", script]
    written: dict[str, str] = json.loads(subprocess.check_output(command, cwd=tmp_path, timeout=60))
    return written


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("messages", [False, True])
def test_what_is_copied_runs(messages: bool, generator: tf.Generator, tmp_path: Path) -> None:
    engine = Engine(generator, name="parcels")
    server = create_app(engine, keys=["k"], playground=True)
    with TestClient(server, base_url="http://127.0.0.1:8000") as app:
        told = app.get("/playground/config.json").json()
        assert told["served"] == "parcels" and told["keys"] is True
        prompt = json.dumps([{"role": "user", "content": "It's paid."}]) if messages else "It's paid."
        state = {
            "kind": "regex",
            "source": "[a-c']{3}",
            "options": {},
            "prompt": prompt,
            "messages": messages,
        }
        texts = copied(state, told, tmp_path)
        words = shlex.split(texts["curl, for tokenform serve"])
        headers = dict(words[i + 1].split(": ") for i, word in enumerate(words) if word == "-H")
        assert headers.pop("Authorization") == "Bearer $TOKENFORM_API_KEY"
        body, path = json.loads(words[words.index("-d") + 1]), urlsplit(words[1]).path
        assert app.post(path, json=body).status_code == 401
        answer = app.post(path, json=body, headers={"Authorization": "Bearer k"})
        assert answer.status_code == 200, answer.text
        assert re.fullmatch("[a-c']{3}", answer.json()["choices"][0]["message"]["content"])
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(texts["Python"], {})
    assert re.fullmatch("[a-c']{3}", said.getvalue().strip())


def test_messages_are_a_prompt_and_what_the_model_reads_is_told(
    client: TestClient, generator: tf.Generator
) -> None:
    chat = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Ada is 36."}]
    asking = body("regex", "[ab]+", "a", prompt=json.dumps(chat), messages=True)
    reads = client.post("/playground/api/next", json=asking).json()["reads"]
    ids = generator.prompt_ids(chat, tf.regex("[ab]+"))
    assert reads["tokens"] == len(ids) and "Be short." in reads["text"] and "Ada is 36." in reads["text"]
    assert generator.prompt_ids(json.dumps(chat), tf.regex("[ab]+")) != ids
    for wrong in ("[", '{"a": 1}', '[{"role": "king", "content": "a"}]', "[3]"):
        answer = client.post("/playground/api/next", json={**asking, "prompt": wrong})
        assert answer.status_code == 400 and answer.json()["error"]["message"], wrong
        alone = client.post("/playground/api/inspect", json={**asking, "prompt": wrong})
        assert alone.status_code == 200, "the constraint is right"


def test_the_comparison_says_what_draws_are_worth(client: TestClient) -> None:
    small = next(one for one in EXAMPLES if one["name"] == "A small language")
    told = {
        one.get("name", one["type"]): one for one in events(client, "compare", of(small, draws=60, seed=1))
    }
    exact = told["exact"]
    cars, awrs = told["cars"], told["awrs"]
    assert cars["ess"] == pytest.approx(60) and cars["noise"] == pytest.approx(exact["noise"])
    assert 1 <= awrs["ess"] <= 60 and awrs["noise"] >= exact["noise"] and "ess" not in told["local"]


def test_the_comparison_has_the_exact_distribution(client: TestClient) -> None:
    example = BY_NAME["A small language"]
    exact, *samplers, done = events(client, "compare", of(example, draws=60, seed=1))
    assert (
        exact["type"] == "exact" and done["type"] == "done" and exact["count"] == 28
    )  # 2 + 4 + 8 texts, twice
    assert 0.99 < sum(exact["probabilities"]) <= 1 + 1e-9
    assert [one["name"] for one in samplers] == ["local", "asap", "cars", "awrs", "smc", "mcmc"]
    by_name = {one["name"]: one for one in samplers}
    assert by_name["cars"]["distance"] < 3 * exact["noise"] < by_name["local"]["distance"]


def test_a_large_language_is_refused(client: TestClient) -> None:
    (error,) = events(client, "compare", body("regex", "[a-z]{1,20}", prompt="A word.", draws=10))
    assert (error["type"], error["kind"]) == ("error", "LimitExceeded")


WRONG: list[tuple[str, Any]] = [
    ("inspect", []),
    ("inspect", {"constraint": "x"}),
    ("inspect", {"constraint": {"kind": "code", "source": ""}}),
    ("inspect", body("schema", "{}", extra=1)),
    ("inspect", body("schema", "{}", options={"registry": "x"})),
    ("inspect", body("schema", "{}", options={"order": "random"})),
    ("inspect", body("schema", '{"type": 3}')),
    ("inspect", body("schema", "{")),
    ("inspect", body("schema", '{"$ref": "http://example.org/schema"}')),
    ("inspect", body("schema", "[" * 60000)),
    ("inspect", body("regex", "a" * 70000)),
    ("inspect", body("regex", "a", "b" * 40000)),
    ("inspect", body("tools", "{}", options={"format": "hermes"})),
    ("inspect", body("tools", "[]", options={"format": "/etc/passwd"})),
    ("next", body("regex", "(")),
    ("write", body("regex", "a", seed=-1)),
    ("write", body("regex", "a", max_tokens=1e9)),
    ("write", body("regex", "a", sampler="__import__")),
    ("compare", body("regex", "a", draws=True)),
]


@pytest.mark.parametrize(("name", "asking"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_said(client: TestClient, name: str, asking: Any) -> None:
    answer = client.post(f"/playground/api/{name}", json=asking)
    told = (
        answer.json()["error"]
        if answer.status_code == 400
        else json.loads(answer.text.partition("data: ")[2])
    )
    assert hasattr(tf.errors, told["kind"]) and told["kind"] != "EngineError" and told["message"]


@pytest.mark.parametrize(
    "text", ["é" * 9000, "\x00\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace")]
)
def test_odd_documents_are_documents(client: TestClient, text: str) -> None:
    assert client.post("/playground/api/inspect", json=body("regex", ".*", text)).status_code == 200


def test_half_a_character_is_refused(client: TestClient) -> None:
    raw = b'{"constraint": {"kind": "regex", "source": "a"}, "text": "\\ud800"}'
    answer = client.post("/playground/api/inspect", content=raw, headers={"content-type": "application/json"})
    assert answer.status_code == 400 and "surrogate" in answer.json()["error"]["message"]


def test_other_sites_may_not_ask(client: TestClient) -> None:
    asking = json.dumps(body("regex", "a"))
    plain = client.post("/playground/api/inspect", content=asking, headers={"content-type": "text/plain"})
    away = {"content-type": "application/json", "origin": "https://example.org"}
    named = {"content-type": "application/json", "host": "rebound.example.org"}
    answers = [client.post("/playground/api/inspect", content=asking, headers=h) for h in (away, named)]
    assert [plain.status_code, *(answer.status_code for answer in answers)] == [400, 400, 400]
    own = {"content-type": "application/json", "origin": "http://127.0.0.1:8000"}
    assert client.post("/playground/api/inspect", content=asking, headers=own).status_code == 200


def test_a_body_that_goes_on_is_cut(client: TestClient) -> None:
    large = b"[" + b" " * queries.BODY + b"]"
    answer = client.post(
        "/playground/api/inspect", content=large, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400 and "larger" in answer.json()["error"]["message"]


def test_a_job_ends_when_its_reader_has_gone() -> None:
    import asyncio

    ended, begun = threading.Event(), threading.Event()

    def job(channel: running.Channel) -> None:
        try:
            while True:
                channel.send("beat", {})
                begun.set()
        finally:
            ended.set()

    async def read_one() -> None:
        response = running.Workers().stream(job)
        body = response.body_iterator
        assert "beat" in str(await body.__anext__())
        await body.aclose()  # type: ignore[attr-defined]

    asyncio.run(read_one())
    assert begun.wait(10) and ended.wait(10)


def test_too_many_are_told_to_come_again(generator: tf.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "THREADS", 1)
    monkeypatch.setattr(running, "WAITING", -1)
    app = TestClient(Starlette(routes=routes(generator)), base_url="http://localhost")
    answer = app.post("/playground/api/inspect", json=body("regex", "a"))
    assert answer.status_code == 429 and answer.headers["retry-after"] == "1"
