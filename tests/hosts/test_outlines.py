"""The backend behind Outlines' own generators."""

from __future__ import annotations

import copy
import json
import re

import jsonschema
import pytest

from tokenform.builtin.loading import load
from tokenform.errors import OptionError, UnsupportedRegex

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 999},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 1},
    },
    "required": ["n", "tags"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def outlines(needs):
    module = needs("outlines")
    from tokenform.integrations.outlines import register

    register()
    register()
    return module


@pytest.fixture(scope="module")
def model(outlines):
    model, tokenizer = load()
    return outlines.from_transformers(copy.deepcopy(model), tokenizer)


@pytest.mark.filterwarnings("ignore")
def test_generators_by_name(outlines, model):
    schema = outlines.json_schema(json.dumps(SCHEMA))
    written = outlines.Generator(model, schema, backend="tokenform")("An order:", max_new_tokens=60)
    jsonschema.validate(json.loads(written), SCHEMA)
    code = outlines.Generator(model, outlines.regex(r"[A-Z]-\d{4}"), backend="tokenform")
    for prompt in ("The number:", "Another one:"):
        assert re.fullmatch(r"[A-Z]-\d{4}", code(prompt, max_new_tokens=20))


@pytest.mark.filterwarnings("ignore")
def test_a_generator_that_goes_on_behind_its_own_text(outlines, model):
    tokenizer = copy.deepcopy(model.hf_tokenizer)
    tokenizer.chat_template = None  # the prompts are the texts alone
    bare = outlines.from_transformers(model.model, tokenizer)
    code = outlines.Generator(bare, outlines.regex(r"[A-Z]-\d{4};"), backend="tokenform")
    text = "The numbers:"
    for _ in range(3):
        new = code(text, max_new_tokens=20)
        assert re.fullmatch(r"[A-Z]-\d{4};", new)
        text += new


@pytest.mark.filterwarnings("ignore")
def test_what_is_wrong_is_said(outlines, model):
    with pytest.raises(UnsupportedRegex):
        outlines.Generator(model, outlines.regex(r"(a)\1"), backend="tokenform")
    with pytest.raises(OptionError, match="whitespace_pattern"):
        outlines.backends.get_json_schema_logits_processor("tokenform", model, "{}", " *")
    with pytest.raises(ValueError, match="other"):
        outlines.Generator(model, outlines.regex("a"), backend="other")
