"""Tags that are kept from one structural tag to the next: the same texts as where every tag is read anew."""

from __future__ import annotations

import gc
import json
import pickle
import random
import threading

import numpy as np
import pytest

import tokenform as tf
from tokenform.errors import InvalidSchema, SchemaWarning
from tokenform.frontends import forms, structural_cache
from tokenform.frontends import structural_tag as module
from tokenform.frontends.structural_tag import structural_tag
from tokenform.frontends.tools.compiled import shape_form
from tokenform.frontends.tools.shape import Shape

SPECIAL = ("<|x|>", "<|call|>")
WORDS = [b"ab", b'{"', b'":', b"</f>", b"<f=", b"a>", b'"}', b"1,", b">", b"<fun"]
VOCABULARY = tf.Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"", *WORDS, *(text.encode() for text in SPECIAL)],
    eos=[256],
    special=[256, 257 + len(WORDS), 258 + len(WORDS)],
)
NAMES = ["a", "ab", "abc", "b", "get", "get_all", "a>", "<|x|>a", "a<|x|>", "é"]
SCHEMAS = [
    {"type": "integer"},
    {"enum": ["a", "b", 12]},
    {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
    {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/x"}},
        "$defs": {"x": {"type": ["null", "array"]}},
    },
    {"type": "object", "properties": {"y": {"type": "string", "maxLength": 3}, "z": {"const": 1}}},
]


def drawn(rng: random.Random):
    """A tag whose name may begin that of another, with content of some kind."""
    schema = rng.choice(SCHEMAS)
    document = {"type": "json_schema", "json_schema": schema}
    plain = [
        document,
        document,
        document,
        document | {"any_order": True},
        document | {"max_whitespace_cnt": 2},
        document | {"excludes": ["</f>"]},
    ]
    typed = {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "integer"}}}
    inner = {"n": {"$ref": "#/$defs/n"}, "s": {"type": rng.choice(["string", "integer", "boolean"])}}
    node = {"type": "object", "properties": inner}
    nested = {"type": "object", "properties": {"x": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}}
    others = [
        {"type": "json_schema", "style": "minimax_m3_xml", "json_schema": nested},
        {"type": "json_schema", "style": "minimax_m3_xml", "json_schema": nested},
        {"type": "regex", "pattern": "[ab]{1,3}"},
        {"type": "const_string", "value": rng.choice(["yes", "<|x|>", ""])},
        {"type": "grammar", "grammar": 'root ::= "(" root ")" | "x"'},
        {"type": "sequence", "elements": [{"type": "regex", "pattern": "[0-9]"}, document]},
        {"type": "or", "elements": [document, {"type": "const_string", "value": "no"}]},
        {"type": "qwen_xml_parameter", "json_schema": typed},
        {"type": "json_schema", "style": "minimax_m3_xml", "json_schema": typed},
        {"type": "any_text"},
        {"type": "tags_with_separator", "separator": ";", "tags": [end_of("<i>", document)]},
    ]
    content = rng.choice(plain if rng.random() < 0.6 else others)
    ends = ["</f>", "</f>", "<|call|>", ["</f>", "</g>"], "</f>\n", ["", "!"]]
    begin = rng.choice(["<f=", "<f=", "<f=", "<g>"]) + rng.choice(NAMES) + rng.choice([">", ">", "", "<|x|>"])
    return {"type": "tag", "begin": begin, "content": content, "end": rng.choice(ends)}


def end_of(begin, content):
    return {"type": "tag", "begin": begin, "content": content, "end": "</i>"}


def put(tags, rng: random.Random):
    """The tags in one of the formats that hold many."""
    flags = {"at_least_one": rng.random() < 0.5, "stop_after_first": rng.random() < 0.3}
    triggered = {"type": "triggered_tags", "triggers": ["<f=", "<g>"], "tags": tags} | flags
    separated = {"type": "tags_with_separator", "separator": rng.choice([",", ""]), "tags": tags} | flags
    thought = end_of("<i>", {"type": "any_text"})
    kinds = [
        triggered,
        triggered,
        separated,
        {"type": "sequence", "elements": [thought, triggered]},
        {"type": "sequence", "elements": [{"type": "any_text"}, separated]},
    ]
    return {"type": "structural_tag", "format": rng.choice(kinds)}


def anew(tag, special=SPECIAL, options=None):
    """The grammar of a tag all of whose tags are written out."""
    reader = module._TagReader(module.Texts(special), options or {})
    return forms.compiled(shape_form(Shape(reader.root(tag), reader.rules), options), "structural tag")


def same_masks(kept: tf.TokenAutomaton, written: tf.TokenAutomaton, rng: random.Random) -> int:
    """Compares masks along texts that are drawn; how many."""
    compared = 0
    for _ in range(6):
        here, there = kept.start, written.start
        for _ in range(30):
            mask = kept.mask(here)
            assert np.array_equal(mask, written.mask(there))
            assert kept.is_accepting(here) == written.is_accepting(there)
            compared += 1
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
            likely = [token for token in allowed if chr(token) in "<fgxns=ab>{}" or token > 256]
            choices = [
                token for token in (likely if likely and rng.random() < 0.8 else allowed) if token != 256
            ]
            if not choices:
                break
            token = rng.choice(choices)
            here, there = kept.advance(here, token), written.advance(there, token)
    return compared


@pytest.mark.parametrize("seed", range(12))
def test_masks_are_those_of_tags_that_are_written_out(seed):
    rng = random.Random(seed)
    tags = [drawn(rng) for _ in range(rng.randint(1, 9))]
    options = rng.choice([{}, {"whitespace": "compact"}, {"order": "any"}])
    for _ in range(4):
        tag = put(tags, rng)
        kept = structural_tag(json.dumps(tag), special=SPECIAL, json_options=options)
        written = anew(tag, options=options).compile(VOCABULARY)
        assert same_masks(kept.compile(VOCABULARY), written, rng) > 6
        again = tf.Grammar.from_bytes(pickle.loads(pickle.dumps(kept)).to_bytes())
        assert same_masks(again.compile(VOCABULARY), written, rng) > 6
        tags[rng.randrange(len(tags))] = drawn(rng)
        if len(tags) > 1:
            tags.pop(rng.randrange(len(tags)))
        tags.insert(0, drawn(rng))


def calls(count, **more):
    """A tag for each of so many functions."""
    made = []
    for number in range(count):
        members = {f"argument_{number}": {"type": "integer"}, **more.get(f"f{number}", {})}
        schema = {"type": "object", "properties": members}
        content = {"type": "json_schema", "json_schema": schema}
        made.append({"type": "tag", "begin": f'<f>{{"f{number}": ', "content": content, "end": "}</f>"})
    return {"format": {"type": "triggered_tags", "triggers": ["<f>"], "tags": made}}


@pytest.fixture
def read(monkeypatch):
    """The places of tags that were read alone."""
    places = []
    alone = module._read_alone

    def reading(special, options, lead, tag, place, scope):
        places.append(place)
        return alone(special, options, lead, tag, place, scope)

    structural_cache.TAGS.clear()
    monkeypatch.setattr(module, "_read_alone", reading)
    return places


def test_a_tag_is_read_once_for_all_that_have_it(read):
    structural_tag(calls(5))
    assert read == [f"/format/tags/{number}" for number in range(5)]
    changed = calls(5, f3={"more": {"type": "null"}})
    grammar = structural_tag(json.dumps(changed))
    assert read[5:] == ["/format/tags/3"]
    assert structural_tag(changed, json_options={"whitespace": "compact"}) and len(read) == 11
    automaton = grammar.compile(VOCABULARY)
    assert automaton.matches(b'<f>{"f3": {"more": null}}</f>') and not automaton.matches(
        b'<f>{"f2": {"more":'
    )
    both = (grammar + ".").compile(VOCABULARY)
    assert both.matches(b'so <f>{"f2": {}}</f>.') and not both.matches(b'so <f>{"f5": {}}</f>.')
    compact = grammar.in_manner({"whitespace": "compact"}).compile(VOCABULARY)
    assert compact.matches(b'<f>{"f2": {"argument_2":1}}</f>') and not compact.matches(b'<f>{"f2": { }}</f>')


def test_errors_and_notes_are_those_of_the_tags_where_they_stand(read):
    structural_tag(calls(3))
    wrong = calls(4, f2={"x": {"type": "integer", "minimum": "one"}})
    with pytest.raises(InvalidSchema) as error:
        structural_tag(wrong)
    assert error.value.pointer == "/format/tags/2/content/json_schema/properties/x/minimum"
    wrong["format"]["tags"].pop(0)
    with pytest.raises(InvalidSchema) as error:
        structural_tag(wrong)
    assert error.value.pointer == "/format/tags/1/content/json_schema/properties/x/minimum"
    unknown = calls(4, f1={"x": {"minimun": 1}}, f3={"x": {"format": "nothing"}})
    for _ in range(2):
        with pytest.warns(SchemaWarning, match="minimun"):
            notes = structural_tag(unknown).report
        assert sorted(notes) == sorted(anew(unknown, ()).report) != []


def test_what_is_kept_holds_no_vocabulary_and_no_request(read):
    class Spelled:
        def __call__(self, token):
            return None

    spelled = Spelled()
    kept = structural_tag(calls(2), token_text=spelled)
    gc.collect()
    assert kept and not [one for one in gc.get_referrers(spelled) if one is not locals()]


def test_threads_that_read_the_same_tags(read):
    tag, found = json.dumps(calls(40)), []

    def make():
        found.append(structural_tag(tag).core.form())

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1 and len(read) >= 40


def test_what_tags_name_is_their_own(read):
    tags = []
    for kind in ("string", "integer"):
        inner = {"n": {"$ref": "#/$defs/n"}, "s": {"type": kind}}
        defs = {"n": {"type": "object", "properties": inner}}
        schema = {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": defs}
        content = {"type": "json_schema", "style": "minimax_m3_xml", "json_schema": schema}
        tags.append({"begin": f"<f={kind}>", "content": content, "end": "</f>"})
    whole = {"format": {"type": "tags_with_separator", "separator": ",", "tags": tags}}
    automaton = structural_tag(whole).compile(VOCABULARY)
    assert len(read) == 2
    mark = "]<]minimax[>["
    for kind, value, right in [("string", "x", True), ("integer", "x", False), ("integer", "1", True)]:
        body = f"{mark}<n>{mark}<s>{value}{mark}</s>{mark}</n>"
        assert automaton.matches(f"<f={kind}>{body}</f>".encode()) is right
