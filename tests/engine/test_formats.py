"""Every format of the drafts can be written: walks along its masks end, as texts that are of the format.

Checking a document asks the automaton alone; masks ask more of a state (how far its counters reach, which of
its ways live), so a format may be checked well and yet be impossible to write.
"""

from __future__ import annotations

import json
import random

import jsonschema
import pytest
from benchmarks.suites.walks import random_walk

import tokenform as tf

FORMATS = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
]
PIECES = ["ab", "(?", "://", "xn--", "2024-", "{1,", "é", "日本", '","', "\\u00", "[^", "%2", "::"]
TOKENS = [bytes([i]) for i in range(256)] + [piece.encode() for piece in PIECES] + [b""]
EOS = len(TOKENS) - 1
# judges that are not of the drafts' opinion: one reads Python's patterns, one counts a name's characters in
# Punycode, some know no leap second, no literal beyond ASCII, or no digit after a zero inside of a number
LEFT_OUT = ("regex", "idn-hostname", "time", "date-time", "uri-template", "relative-json-pointer")
JUDGED = jsonschema.Draft202012Validator.FORMAT_CHECKER


@pytest.mark.parametrize("lengths", [{}, {"minLength": 3, "maxLength": 40}])
@pytest.mark.parametrize("name", FORMATS)
def test_walks_write_texts_of_the_format(name, lengths):
    schema = {"type": "string", "format": name, **lengths}
    automaton = tf.json_schema(schema).compile(tf.Vocabulary(TOKENS, eos=[EOS]))
    judge = tf.json_schema(schema, strings="any").compile(tf.Vocabulary(TOKENS, eos=[EOS]))
    rng = random.Random(name)
    for _ in range(3 if name == "idn-hostname" else 12):
        tokens, wrong = random_walk(automaton, rng, 60, EOS)
        assert not wrong
        text = json.loads(b"".join(TOKENS[t] for t in tokens))
        assert judge.check(json.dumps(text).encode()) is None
        if name in JUDGED.checkers and name not in LEFT_OUT:
            JUDGED.check(text, name)
