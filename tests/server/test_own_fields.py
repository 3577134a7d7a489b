"""Fields of this server: the request's drafter, and how sure the model was of each field of a document."""

from __future__ import annotations

import json
import math

import pytest

from tokenform.server.reading import _DRAFTERS

ORDER = {
    "type": "object",
    "properties": {
        "number": {"type": "integer"},
        "to": {"type": "array", "items": {"type": "string", "maxLength": 6}, "minItems": 1, "maxItems": 2},
        "a/b": {"const": True},
        "note": {"type": "string", "maxLength": 4},
    },
    "required": ["number", "to", "a/b"],
    "additionalProperties": False,
}
CHAT = "/v1/chat/completions"
BODY = {
    "messages": [{"role": "user", "content": "The order 4821 goes to Ada."}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "it", "schema": ORDER}},
    "seed": 4,
    "temperature": 0.8,
    "max_tokens": 80,
}


def test_a_drafter_changes_the_work_and_not_the_text(client):
    texts, guesses = set(), {}
    client.post(CHAT, json=BODY)  # the first text tells what passes and drafts cost
    for drafter in [None, "auto", *_DRAFTERS, ["forced", "ngram"]]:
        answer = client.post(CHAT, json={**BODY, "drafter": drafter, "report": True}).json()
        choice = answer["choices"][0]
        texts.add(choice["message"]["content"])
        guesses[str(drafter)] = choice["tokenform"]["stats"]["drafted"]
        sources = set(choice["tokenform"].get("drafts", {}))
        if drafter in ("forced", "names", "ngram"):
            assert sources <= {drafter}
    assert len(texts) == 1
    assert guesses["none"] == 0 < min(guesses["forced"], guesses["None"], guesses["auto"])


@pytest.mark.parametrize(
    ("drafter", "place"),
    [
        ("magic", "/drafter"),
        (["forced", "magic"], "/drafter/1"),
        ([], "/drafter"),
        (["none", "ngram"], "/drafter/0"),
    ],
)
def test_unknown_drafters_are_refused(client, drafter, place):
    answer = client.post(CHAT, json={**BODY, "drafter": drafter})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == place


def test_faithful_samplers_take_no_drafter(client):
    answer = client.post(CHAT, json={**BODY, "sampler": "cars", "drafter": "forced"})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "/drafter"


def document(client, **more):
    return client.post(CHAT, json={**BODY, **more}).json()["choices"][0]


def test_every_value_has_its_probability(client):
    choice = document(client, confidence=True, logprobs=True)
    value = json.loads(choice["message"]["content"])
    told = choice["tokenform"]["confidence"]
    leaves = {"/number", "/a~1b", *(f"/to/{i}" for i in range(len(value["to"])))}
    assert set(told) == leaves | ({"/note"} if "note" in value else set())
    tokens = choice["logprobs"]["content"]
    for pointer, one in told.items():
        first, last = one["tokens"]
        own = tokens[first:last]
        assert one["text"] in "".join(token["token"] for token in own), pointer
        assert math.isclose(one["logprob"], math.fsum(token["logprob"] for token in own), abs_tol=1e-9)
        assert math.isclose(one["probability"], math.exp(one["logprob"]))
    assert json.loads(told["/number"]["text"]) == value["number"]


def test_pointers_choose_and_what_is_absent_is_left_out(client):
    told = document(client, confidence=["/to", "/nothing", ""])["tokenform"]["confidence"]
    assert set(told) == {"/to", ""}
    assert json.loads(told[""]["text"])["to"] == json.loads(told["/to"]["text"])


def test_the_other_endpoints_tell_it_too(client):
    schema = {"structured_outputs": {"json": ORDER}, "confidence": ["/number"], "seed": 1}
    for path, body in (
        ("completions", {"prompt": "The order 4821 goes to Ada."}),
        ("responses", {"input": "The order 4821 goes to Ada."}),
        ("messages", {"messages": BODY["messages"], "max_tokens": 80}),
    ):
        answer = client.post(f"/v1/{path}", json={**body, **schema}).json()
        told = (answer["choices"][0] if "choices" in answer else answer)["tokenform"]["confidence"]
        assert 0 < told["/number"]["probability"] <= 1


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"confidence": True, "response_format": None}, "/confidence"),
        ({"confidence": ["number"]}, "/confidence"),
        ({"confidence": ["/a"] * 65}, "/confidence"),
    ],
)
def test_confidence_is_of_documents(client, fields, place):
    answer = client.post(CHAT, json={**BODY, **fields})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == place
