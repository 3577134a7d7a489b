"""References to the official meta-schemas, known without a registry; the package jsonschema judges."""

from __future__ import annotations

import json

import jsonschema
import pytest

import tokenform as tf

MAIN = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]
SCHEMAS = [
    {},
    {"type": "object", "properties": {"a": {"minLength": 3}}},
    {"type": "objekt"},
    {"minLength": -1},
    {"properties": {"a": {"properties": {"b": {"type": 7}}}}},
    {"$defs": {"a": {"type": 7}}},
    {"items": [{"type": "string"}]},
    {"contains": 7},
    {"required": ["a", "a"]},
    7,
]


def bytes_of(schema):
    vocabulary = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], [256], [256])
    return tf.json_schema(schema, order="any", whitespace="any").compile(vocabulary)


@pytest.mark.parametrize("uri", MAIN)
def test_a_schema_is_a_document_like_any_other(uri):
    schema = {"type": "object", "properties": {"s": {"$ref": uri}}, "required": ["s"]}
    automaton = bytes_of(schema)
    verdicts = set()
    for document in SCHEMAS:
        valid = jsonschema.Draft202012Validator(schema).is_valid({"s": document})
        assert automaton.matches(json.dumps({"s": document}).encode()) is valid, document
        verdicts.add(valid)
    assert verdicts == {True, False}


def test_a_vocabulary_alone_checks_its_own_keywords():
    automaton = bytes_of({"$ref": "https://json-schema.org/draft/2020-12/meta/core"})
    assert automaton.matches(b'{"type": 7}')
    assert not automaton.matches(b'{"$defs": 7}')


def test_a_registry_of_the_callers_goes_first():
    vocabulary = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], [256], [256])
    own = {"http://json-schema.org/draft-07/schema": {"type": "integer"}}
    grammar = tf.json_schema({"$ref": "http://json-schema.org/draft-07/schema#"}, registry=own)
    assert grammar.compile(vocabulary).matches(b"7")
