"""Grammars inside guidance's own models, run by guidance's own engine."""

from __future__ import annotations

import copy
import json
import re

import jsonschema
import pytest

import tokenform as tf
from tokenform.builtin.loading import load
from tokenform.errors import BudgetTooSmall, InvalidSchema, ModelError

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "multipleOf": 7, "minimum": 0},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 1},
    },
    "required": ["n", "tags"],
    "additionalProperties": False,
}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def guidance(needs):
    return needs("guidance")


@pytest.fixture(scope="module")
def bridge(guidance):
    import tokenform.integrations.guidance as bridge

    return bridge


@pytest.fixture
def model(guidance, monkeypatch):
    found = guidance.models.Transformers(*copy.deepcopy(load()), echo=False)
    inner = found.engine.get_logits

    def without_cache(token_ids, include_all_uncached_tokens=False):
        found.engine._past_key_values, found.engine._cached_token_ids = None, []
        return inner(token_ids, include_all_uncached_tokens)

    # guidance 0.3.1 takes its cache back in a way that transformers 5 has no more
    monkeypatch.setattr(found.engine, "get_logits", without_cache)
    return found


def test_documents_by_the_other_import(guidance, bridge, model):
    with pytest.raises(ValueError, match="uniqueItems"):
        guidance.json(schema=SCHEMA)
    for most in (14, 40, None):
        text = model + "The order: " + bridge.json("order", schema=SCHEMA, max_tokens=most) + " ends."
        jsonschema.validate(json.loads(text["order"]), SCHEMA)
        assert str(text).endswith(f"The order: {text['order']} ends.")
    assert len(json.loads(text["order"])["tags"]) <= 2


def test_among_guidances_own_grammars(guidance, bridge, model):
    number = bridge.grammar(tf.regex("[A-Z]{2}-[0-9]{4}"), "number", temperature=1.0)
    both = model + f"Number {number}, " + guidance.select(["new", "old"], name="kind")
    assert re.fullmatch("[A-Z]{2}-[0-9]{4}", both["number"]) and both["kind"] in ("new", "old")
    seven = (
        both
        + bridge.json("list", schema=list[int], max_tokens=12, whitespace="compact")
        + guidance.gen("rest", max_tokens=2)
    )
    assert isinstance(json.loads(seven["list"]), list) and not re.search(r"\s", seven["list"])


def test_tokens_that_can_not_be_otherwise_are_not_asked_of_the_model(bridge, model):
    fixed = bridge.grammar(tf.choice(["the only text that there is, and no other"]), "text")
    text = model + "It is " + fixed
    assert text["text"] == "the only text that there is, and no other"
    assert text._get_usage().forward_passes <= 1


def test_what_is_wrong_is_said(guidance, bridge, model):
    with pytest.raises(InvalidSchema, match="strin"):
        bridge.json(schema={"type": "strin"})
    with pytest.raises(BudgetTooSmall):
        model + bridge.json(schema=SCHEMA, max_tokens=2)

    class Remote:
        pass

    with pytest.raises(ModelError, match="Remote"):
        bridge._Node(None)._run(Remote())
