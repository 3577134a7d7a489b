"""Structural tags: what they accept, compared with XGrammar where both read them alike."""

from __future__ import annotations

import json
import random
from itertools import product

import pytest

import tokenform as tf
from tokenform.errors import InvalidGrammar, InvalidRegex, InvalidSchema, UnsupportedRegex, UnsupportedSchema

INTEGER = {"type": "json_schema", "json_schema": {"type": "integer"}}


def tag(begin, end, content=INTEGER):
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def text(value):
    return {"type": "const_string", "value": value}


ANY = {"type": "any_text"}
A, B = tag("<a>", "</a>"), tag("<b>", "</b>")
TRIGGERED = {"type": "triggered_tags", "triggers": ["<a>", "<b>"], "tags": [A, B]}
FORMATS = {
    "const": text("abc"),
    "regex": {"type": "regex", "pattern": "[ab]+c"},
    "any character": {"type": "regex", "pattern": "a.b"},
    "grammar": {"type": "grammar", "grammar": 'root ::= "(" root ")" | "x"'},
    "macros": {"type": "grammar", "grammar": 'root ::= Regex("[ab]+c") | x\nx[lazy] ::= "n"+'},
    "sequence": {"type": "sequence", "elements": [text("n="), INTEGER, text(";")]},
    "or": {"type": "or", "elements": [text("yes"), INTEGER]},
    "optional": {"type": "sequence", "elements": [{"type": "optional", "content": text("a")}, text("b")]},
    "plus": {"type": "plus", "content": text("ab")},
    "star": {"type": "star", "content": tag("<a>", "</a>")},
    "repeat": {"type": "repeat", "min": 1, "max": 3, "content": text("a")},
    "tag": tag("<a>", "</a>"),
    "free tag": tag("<a>", "</a>", ANY),
    "two ends": tag("<a>", ["</a>", "</b>"], ANY),
    "excludes": {"type": "any_text", "excludes": ["<a>", "no"]},
    "triggered": TRIGGERED,
    "at least one": TRIGGERED | {"at_least_one": True},
    "stop": TRIGGERED | {"stop_after_first": True},
    "one and stop": TRIGGERED | {"at_least_one": True, "stop_after_first": True},
    "excluding": TRIGGERED | {"excludes": ["no"]},
    "separated": {"type": "tags_with_separator", "tags": [A, B], "separator": ","},
    "separated one": {
        "type": "tags_with_separator",
        "tags": [A, B],
        "separator": ",",
        "at_least_one": True,
        "stop_after_first": True,
    },
    "dispatch": {"type": "dispatch", "rules": [["<a>", INTEGER], ["<b>", text("b")]]},
    "dispatch once": {"type": "dispatch", "rules": [["<a>", INTEGER]], "loop": False},
    "inside": tag("[", "]", TRIGGERED),
    "thought": {"type": "sequence", "elements": [tag("<t>", "</t>", ANY), TRIGGERED]},
}
PIECES = [
    "abc",
    "aac",
    "((x))",
    "x",
    "n=",
    "12",
    ";",
    "yes",
    "a",
    "b",
    "ab",
    "<a>",
    "</a>",
    "<b>",
    "</b>",
    ",",
]
PIECES += ["no", "[", "]", "<t>", "</t>", " ", "-7", "<", "</", "it", "(x)"]


def texts():
    """Pieces put together, drawn evenly by a fixed rule, and texts that come near what formats accept."""
    made = ["", "abc", "aabc", "((x))", "n=12;", "n=x;", "yes", "12", "b", "ab", "abab", "aaa", "aaaa"]
    made += [
        "<a>12</a>",
        "<a>12</b>",
        "<a>x</a>",
        "<a>12</a><a>3</a>",
        "a\nb",
        "it <a>12</a> is",
        "<a>1</a>,<b>2</b>",
    ]
    made += [
        "<a>1</a>,",
        "<a>any</a>",
        "<a>any</b>",
        "<a>a</a>b</b>",
        "it <a>12</a> and <b>3</b> no",
        "it is",
        "n",
    ]
    made += [
        "[it <a>1</a>]",
        "[<a>1]",
        "[it]",
        "[a]b]",
        "<t>hm</t>it<a>1</a>",
        "<t>hm</t>",
        "<t><a>x</t>",
        "<a",
        "<a>",
    ]
    made += ["it <a>1", "no", "<b>b", "<a>1<b>b", "<a>1 <a>2", "<a>1x"]
    state = 1
    for _ in range(120):
        parts = []
        for _ in range(1 + state % 5):
            state = state * 1103515245 + 12345 & 0x7FFFFFFF
            parts.append(PIECES[(state >> 8) % len(PIECES)])
        made.append("".join(parts))
    return made


BYTES = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])


def ours(format, written, **options):
    made = tf.tool_formats.structural_tag({"type": "structural_tag", "format": format}, **options)
    return made.compile(BYTES).matches(written.encode())


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_texts_as_xgrammar(name):
    xgrammar = pytest.importorskip("xgrammar")
    spelled = [bytes([b]) for b in range(256)] + [b"</s>"]
    info = xgrammar.TokenizerInfo(spelled, stop_token_ids=[256])
    spec = {"type": "structural_tag", "format": FORMATS[name]}
    compiled = xgrammar.GrammarCompiler(info).compile_structural_tag(json.dumps(spec))
    automaton = tf.tool_formats.structural_tag(spec).compile(BYTES)
    different = []
    for written in texts():
        matcher = xgrammar.GrammarMatcher(compiled)
        theirs = all(matcher.accept_token(byte) for byte in written.encode()) and matcher.accept_token(256)
        if theirs != automaton.matches(written.encode()):
            different.append((written, "theirs" if theirs else "ours"))
    assert not different


CONTENTS = {
    "any": ANY,
    "short": {"type": "any_text", "max_chars": 4},
    "triggered": {"type": "triggered_tags", "triggers": ["<"], "tags": [tag("<x", ">", text("1"))]},
    "token triggered": {
        "type": "token_triggered_tags",
        "trigger_tokens": [60],
        "tags": [tag({"type": "token", "token": 60}, ">", text("1"))],
    },
    "tokens": {"type": "any_tokens"},
    "no token": {"type": "star", "content": {"type": "exclude_token", "exclude_tokens": [60]}},
    "dispatch": {"type": "dispatch", "rules": [["<", text("1")]]},
    "dispatch once": {"type": "dispatch", "rules": [["<", text("1")]], "loop": False},
    "token dispatch": {"type": "token_dispatch", "rules": [[60, text("1")]]},
    "regex": {"type": "regex", "pattern": ".*"},
    "star": {"type": "star", "content": ANY},
    "before": {"type": "sequence", "elements": [ANY, text("k")]},
}
AROUND = {
    "tag": lambda one: tag("[", "]", one),
    "two ends": lambda one: tag("[", ["]", "})"], one),
    "sequence": lambda one: {"type": "sequence", "elements": [one, text("]")]},
    "sequence in tag": lambda one: tag("[", "]", {"type": "sequence", "elements": [one, text("k")]}),
    "tag behind": lambda one: {"type": "sequence", "elements": [one, tag("[", "]", text("y"))]},
    "tag in tag": lambda one: tag("[", "]", tag("(", ")", one)),
    "separated": lambda one: {"type": "tags_with_separator", "tags": [tag("[", "]", one)], "separator": ","},
    "plus": lambda one: {"type": "plus", "content": {"type": "sequence", "elements": [one, text(";")]}},
    "dispatch": lambda one: {"type": "dispatch", "rules": [["(", one]]},
    "dispatch in tag": lambda one: tag("[", "]", {"type": "dispatch", "rules": [["(", one]], "loop": False}),
}
# whether "[a]b]" is a text of a tag from "[" to "]" around the content
HOLDS_ITS_END = {
    "token triggered",
    "tokens",
    "no token",
    "dispatch",
    "dispatch once",
    "token dispatch",
    "regex",
}


@pytest.mark.parametrize("content", CONTENTS)
def test_a_text_ends_where_its_tag_does_or_where_its_format_says(content):
    assert ours(tag("[", "]", CONTENTS[content]), "[a]b]", token_text=chr) == (content in HOLDS_ITS_END)
    behind = {"type": "sequence", "elements": [CONTENTS[content], text("]")]}
    assert ours(behind, "ak]" if content == "before" else "a]b]", token_text=chr)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("content", CONTENTS)
def test_texts_end_where_those_of_xgrammar_do(content, around):
    xgrammar = pytest.importorskip("xgrammar")
    spelled = [bytes([b]) for b in range(256)] + [b"</s>"]
    compiler = xgrammar.GrammarCompiler(xgrammar.TokenizerInfo(spelled, stop_token_ids=[256]))
    spec = {"type": "structural_tag", "format": AROUND[around](CONTENTS[content])}
    compiled = compiler.compile_structural_tag(json.dumps(spec))
    automaton = tf.tool_formats.structural_tag(spec, token_text=chr).compile(BYTES)
    different = []
    pieces = ["[", "]", "a", "k", "<x1>", "<1", "(", ")", "})", ";", ",", "[y]"]
    rng = random.Random(0)
    begins = ["[", "[a]", "[(", "a", ""] if around != "plus" else ["a;", ""]
    for _ in range(400):
        written = rng.choice(begins) + "".join(rng.choices(pieces, k=rng.choice([1, 2, 3, 4])))
        written += rng.choice(["]", ")]", "[y]", ";", "k]", ""])
        matcher = xgrammar.GrammarMatcher(compiled)
        theirs = all(matcher.accept_token(byte) for byte in written.encode()) and matcher.accept_token(256)
        if theirs != automaton.matches(written.encode()):
            different.append((written, "theirs" if theirs else "ours"))
    assert not different


def test_the_older_form():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    spec = {
        "structures": [{"begin": "<f>", "schema": schema, "end": "</f>"}],
        "triggers": ["<f"],
    }
    automaton = tf.tool_formats.structural_tag(json.dumps(spec)).compile(BYTES)
    assert automaton.matches(b'so <f>{"n": 1}</f> and <f>{"n":2}</f>.')
    assert not automaton.matches(b"so <f>{}</f>") and not automaton.matches(b"so <foot>")


def test_control_tokens_stand_where_their_texts_do():
    tokens = [bytes([b]) for b in range(256)] + [b"<call>", b"</call>", b"</s>"]
    vocabulary = tf.Vocabulary(tokens, eos=[258], special=[256, 257])
    format = {"type": "triggered_tags", "triggers": ["<call>"], "tags": [tag("<call>", "</call>")]}
    by_token = {
        "type": "token_triggered_tags",
        "trigger_tokens": [256],
        "tags": [tag({"type": "token", "token": 256}, {"type": "token", "token": "</call>"})],
    }
    for one in (format, by_token):
        made = tf.tool_formats.structural_tag(
            {"format": one}, special=["<call>", "</call>"], token_text=lambda token: tokens[token].decode()
        )
        matcher = tf.engine.Matcher(made.compile(vocabulary))
        matcher.accept_tokens([*b"so ", 256, *b"42"])
        assert 257 in matcher.allowed_tokens() and matcher.validate_tokens([ord("<")]) == 0
        matcher.accept_tokens([257])
        assert matcher.is_accepting()


@pytest.mark.parametrize(
    ("format", "kind", "pointer"),
    [
        ({"type": "nothing"}, InvalidGrammar, "/format"),
        ({"type": "regex", "pattern": "a*", "max_tokens": 3}, InvalidGrammar, "/format"),
        ({"type": "regex", "pattern": "a*", "max_chars": 3}, InvalidGrammar, "/format"),
        (tag("<a>", "</a>", {"type": "any_text", "temperature": 0.5}), InvalidGrammar, "/format/content"),
        (A | {"max_tokens": 3}, InvalidGrammar, "/format"),
        (tag("<a>", "</a>", {"type": "any_tokens", "max_chars": 3}), InvalidGrammar, "/format/content"),
        ({"type": "exclude_token", "exclude_tokens": [True]}, InvalidGrammar, "/format/exclude_tokens"),
        (
            tag("<a>", "</a>", {"type": "json_schema", "json_schema": {"type": "strin"}}),
            InvalidSchema,
            "/format/content/json_schema/type",
        ),
        (TRIGGERED | {"tags": [A, tag("<c>", "")]}, InvalidGrammar, "/format/tags/1"),
        (
            {"type": "or", "elements": [A, {"type": "grammar", "grammar": "root ::= Regex(a)"}]},
            InvalidGrammar,
            "/format/elements/1/grammar",
        ),
        (
            {"type": "or", "elements": [A, {"type": "regex", "pattern": r"(a)\1"}]},
            UnsupportedRegex,
            "/format/elements/1/pattern",
        ),
        ({"type": "regex", "pattern": "a)|(?:b"}, InvalidRegex, "/format/pattern"),
        (
            {"type": "or", "elements": [{"type": "regex", "pattern": "a)(?:b"}]},
            InvalidRegex,
            "/format/elements/0/pattern",
        ),
        ({"type": "repeat", "min": 3, "max": 1, "content": A}, InvalidGrammar, "/format"),
        (tag(3, "a"), InvalidGrammar, "/format/begin"),
        ({"type": "token", "token": 7}, InvalidGrammar, "/format"),
        ([], InvalidGrammar, "/format"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(format, kind, pointer):
    with pytest.raises(kind) as caught:
        tf.tool_formats.structural_tag({"format": format})
    assert caught.value.pointer == pointer


@pytest.mark.parametrize("spec", ["{", "[]", "{}", '{"structures": 3, "triggers": []}', "[" * 100_000])
def test_hostile_texts_are_refused(spec):
    with pytest.raises(tf.TokenformError):
        tf.tool_formats.structural_tag(spec)


def test_deep_nesting_is_refused():
    deep = A
    for _ in range(200):
        deep = {"type": "optional", "content": deep}
    with pytest.raises(InvalidGrammar, match="deeper"):
        tf.tool_formats.structural_tag({"format": deep})


def test_bounded_free_text():
    bounded = {"type": "any_text", "max_chars": 4}
    assert ours(bounded, "äbcd") and not ours(bounded, "abcde")
    assert ours(tag("<", ">", bounded), "<abcd>") and not ours(tag("<", ">", bounded), "<a>c>")


ARGUMENTS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["city"],
    "additionalProperties": False,
}
DSML = '<｜DSML｜parameter name="{}" string="{}">{}</｜DSML｜parameter>'
ELEMENT = "]<]minimax[>[<{0}>{1}]<]minimax[>[</{0}>"
ARGUMENT = '<|open|>argument key="{}" type="{}"<|sep|>{}<|close|>argument<|sep|>'
STYLED = {  # what one style writes for a city and for a number of days
    "qwen_xml": ("<parameter=city>Rome</parameter>", "<parameter=days>{}</parameter>"),
    "minimax_xml": (
        '<parameter name="city">Rome</parameter>',
        '<parameter name="days">{}</parameter>',
    ),
    "minimax_m3_xml": (ELEMENT.format("city", "Rome"), ELEMENT.format("days", "{}")),
    "deepseek_xml": (DSML.format("city", "true", "Rome"), DSML.format("days", "false", "{}")),
    "deepseek_v4_1_xml": (
        DSML.format("city", "true", "Rome").replace("parameter", " parameter"),
        DSML.format("days", "false", "{}").replace("parameter", " parameter"),
    ),
    "glm_xml": (
        "<arg_key>city</arg_key><arg_value>Rome</arg_value>",
        "<arg_key>days</arg_key><arg_value>{}</arg_value>",
    ),
    "cohere_xml": (
        '<cofl:value name="city" type="raw">Rome</cofl:value>',
        '<cofl:value name="days" type="json">{}</cofl:value>',
    ),
    "kimi_k3_xml": (ARGUMENT.format("city", "string", "Rome"), ARGUMENT.format("days", "number", "{}")),
}


def styled_texts(style):
    """Texts, and whether a call may have these arguments."""
    city, days = STYLED[style]
    three = days.format(3)
    return {
        f"<f>{city}{three}</f>": True,
        f"<f>{city}</f>": True,
        f"<f>{three}</f>": False,
        f"<f>{city}{days.format(0)}</f>": False,
        f"<f>{city}{days.format('many')}</f>": False,
        f"<f>{city}{city}</f>": False,
        "<f></f>": False,
        '<f>{"city": "Rome"}</f>': False,
    }


def styled(style):
    return tag("<f>", "</f>", {"type": "json_schema", "json_schema": ARGUMENTS, "style": style})


@pytest.mark.parametrize("style", STYLED)
def test_arguments_in_the_styles_of_tool_formats(style):
    for written, right in styled_texts(style).items():
        assert ours(styled(style), written) == right, written


@pytest.mark.parametrize("style", STYLED)
def test_styles_are_those_of_xgrammar(style):
    xgrammar = pytest.importorskip("xgrammar")
    spelled = [bytes([b]) for b in range(256)] + [b"</s>"]
    info = xgrammar.TokenizerInfo(spelled, stop_token_ids=[256])
    spec = {"type": "structural_tag", "format": styled(style)}
    compiled = xgrammar.GrammarCompiler(info).compile_structural_tag(json.dumps(spec))
    for written, right in styled_texts(style).items():
        matcher = xgrammar.GrammarMatcher(compiled)
        theirs = all(matcher.accept_token(byte) for byte in written.encode()) and matcher.accept_token(256)
        assert theirs == right, written


def test_styles_take_any_order_and_the_older_name():
    city, days = STYLED["qwen_xml"]
    turned = f"<f>{days.format(3)}{city}</f>"
    assert not ours(styled("qwen_xml"), turned)
    assert ours(styled("qwen_xml"), turned, json_options={"order": "any"})
    older = tag("<f>", "</f>", {"type": "qwen_xml_parameter", "json_schema": ARGUMENTS})
    assert ours(older, f"<f>{city}</f>")


def test_excluded_texts_occur_in_no_string():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    part = {"type": "json_schema", "json_schema": schema, "excludes": ["</think>"]}
    assert ours(part, '{"a":"<think>"}') and not ours(part, '{"a":"x</think>"}')


def test_what_is_excluded_may_stand_outside_of_strings_and_names():
    schema = {"properties": {"n": {"type": "integer"}, "t": {"type": "string"}, "1": {"type": "integer"}}}
    part = {
        "type": "json_schema",
        "json_schema": schema | {"type": "object"},
        "excludes": ["1", ", t", "true"],
    }
    assert ours(part, '{"n": 1, "t": "2", "more": true}')
    for wrong in ('{"t": "21"}', '{"t": "a, t"}', '{"t": "untrue"}', '{"1": 2}', '{"m1": 2}'):
        assert not ours(part, wrong), wrong


@pytest.mark.parametrize("style", sorted(set(STYLED) - {"minimax_m3_xml", "cohere_xml"}))
def test_names_of_arguments_hold_nothing_that_is_excluded(style):
    xgrammar = pytest.importorskip("xgrammar")
    schema = {"type": "object", "properties": {"b": {"type": "integer"}, "c": {"type": "integer"}}}
    schema |= {"required": ["c"], "additionalProperties": {"type": "integer"}}
    part = {"type": "json_schema", "style": style, "json_schema": schema, "excludes": ["b"]}
    one = STYLED[style][1].format(1)  # the argument `days`
    assert "days" in one
    texts = ["".join(one.replace("days", name) for name in names) for names in ("c", "bc", "cx", "cb")]
    texts.append(one.replace("days", "c") + one.replace("days", "abz"))
    spelled = [bytes([b]) for b in range(256)] + [b"</s>"]
    compiler = xgrammar.GrammarCompiler(xgrammar.TokenizerInfo(spelled, stop_token_ids=[256]))
    compiled = compiler.compile_structural_tag(json.dumps({"type": "structural_tag", "format": part}))
    for written, right in zip(texts, (True, False, True, False, False), strict=True):
        matcher = xgrammar.GrammarMatcher(compiled)
        theirs = all(matcher.accept_token(byte) for byte in written.encode()) and matcher.accept_token(256)
        assert ours(part, written) == theirs == right, written


@pytest.mark.parametrize(
    "more",
    [
        {"style": "yaml"},
        {"excludes": ['":']},
        {"style": "glm_xml", "excludes": ["\\n"]},
        {"max_whitespace_cnt": -2},
        {"max_whitespace_cnt": "2"},
    ],
)
def test_what_a_document_part_can_not_keep_is_refused(more):
    part = {"type": "json_schema", "json_schema": ARGUMENTS} | more
    with pytest.raises(InvalidGrammar) as caught:
        tf.tool_formats.structural_tag({"format": part})
    assert caught.value.pointer == "/format"


KEYED = [
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "patternProperties": {"^x_": {"type": "integer"}, "_s$": {"enum": [1, 2, True]}},
        "additionalProperties": False,
    },
    {
        "type": "object",
        "propertyNames": {"pattern": "^[abx_]{1,3}$"},
        "additionalProperties": {"type": "integer", "minimum": 2},
    },
    {
        "type": "object",
        "patternProperties": {"a": {"type": "integer"}},
        "additionalProperties": {"type": "boolean"},
        "propertyNames": {"not": {"const": "b_s"}},
    },
]


# In this one the closing marker repeats the name, so that no unknown name can be written.
NAMED = [one for one in STYLED if one != "minimax_m3_xml"]


@pytest.mark.parametrize("style", NAMED)
@pytest.mark.parametrize("schema", KEYED)
def test_keys_that_are_not_declared_hang_together_with_their_values(style, schema):
    jsonschema = pytest.importorskip("jsonschema")
    part = tag("<f>", "</f>", {"type": "json_schema", "json_schema": schema, "style": style})
    made = tf.tool_formats.structural_tag({"format": part}).compile(BYTES)
    for key in ("a", "b", "x_", "x_s", "b_s", "abab", "ab"):
        for value in (1, 2, 5, True):
            said = STYLED[style][1].format(json.dumps(value)).replace("days", key)
            said = said.replace('"number"', '"boolean"') if value is True else said
            right = jsonschema.Draft202012Validator(schema).is_valid({key: value})
            assert made.matches(f"<f>{said}</f>".encode()) == right, said


def written_as(style, key, value):
    """One argument that is a number."""
    return STYLED[style][1].format(value).replace("days", key)


COUNTED = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}


@pytest.mark.parametrize("style", NAMED)
@pytest.mark.parametrize(
    "more",
    [
        {"minProperties": 1},
        {"maxProperties": 2},
        {"minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": "integer"}},
        {"required": ["b"], "minProperties": 2, "maxProperties": 3},
        {"minProperties": 1, "maxProperties": 1, "additionalProperties": False},
        {"maxProperties": 2, "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False},
    ],
)
def test_how_many_arguments_there_are(style, more):
    jsonschema = pytest.importorskip("jsonschema")
    schema = COUNTED | more
    part = tag("<f>", "</f>", {"type": "json_schema", "json_schema": schema, "style": style})
    made = tf.tool_formats.structural_tag({"format": part}).compile(BYTES)
    for chosen in product([True, False], repeat=5):
        keys = [key for key, there in zip("abxyz", chosen, strict=True) if there]
        text = "".join(written_as(style, key, 3) for key in keys)
        right = jsonschema.Draft202012Validator(schema).is_valid(dict.fromkeys(keys, 3))
        assert made.matches(f"<f>{text}</f>".encode()) == right, keys


@pytest.mark.parametrize("style", STYLED)
def test_more_unknown_arguments_than_one_are_asked_for(style):
    """An unknown name may be written twice, and is one argument then: no text can be held to two."""
    schema = COUNTED | {"minProperties": 2}
    with pytest.raises(UnsupportedSchema, match="minProperties"):
        ours({"type": "json_schema", "json_schema": schema, "style": style}, "")


@pytest.mark.parametrize("style", STYLED)
@pytest.mark.parametrize("name", ["city name", "a<b", "a&b", 'a"b', "a\nb", "a=b", "é"])
def test_names_are_written_as_they_are(style, name):
    schema = {"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]}
    spelled = name.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    said = written_as(style, spelled if style == "cohere_xml" else name, 3)
    part = {"type": "json_schema", "json_schema": schema, "style": style}
    assert ours(tag("<f>", "</f>", part), f"<f>{said}</f>")
    assert not ours(tag("<f>", "</f>", part), f"<f>{written_as(style, 'other', 3)}</f>")


def test_a_text_ends_at_its_closing_marker_alone():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    for style, before, end in (("glm_xml", "<arg_key>a</arg_key><arg_value>", "</arg_value>"),):
        part = tag("<f>", "</f>", {"type": "json_schema", "json_schema": schema, "style": style})
        assert ours(part, f"<f>{before}<arg_value>x</arg_key>{end}</f>")
        assert not ours(part, f"<f>{before}x{end}{end}</f>")


@pytest.mark.parametrize("style", ["json", *STYLED])
def test_one_part_in_any_order(style):
    part = {"type": "json_schema", "json_schema": ARGUMENTS, "style": style, "any_order": True}
    city, days = STYLED.get(style, ('"city": "Rome"', ', "days": {}'))
    written = [f"{{{city}{days.format(3)}}}", '{"days": 3, "city": "Rome"}', '{"days": 3}']
    if style != "json":
        written = [city + days.format(3), days.format(3) + city, days.format(3)]
    declared = tag("<g>", "</g>", {"type": "json_schema", "json_schema": ARGUMENTS})
    both = {"type": "sequence", "elements": [tag("<f>", "</f>", part), declared]}
    after = '<g>{"city": "Rome", "days": 3}</g>'
    # XGrammar counts the keys alone: it lets one stand twice, and another be absent
    assert [ours(both, f"<f>{one}</f>{after}") for one in written] == [True, True, False]
    assert not ours(both, f"<f>{written[0]}</f>" + '<g>{"days": 3, "city": "Rome"}</g>')


@pytest.mark.parametrize("style", STYLED)
def test_texts_of_a_style_hold_no_excluded_one(style):
    schema = ARGUMENTS | {"properties": {"city": {"enum": ["Rome", "Paris"]}, "days": {"type": "integer"}}}
    city, _ = STYLED[style]
    for said in (ARGUMENTS, schema):
        part = {"type": "json_schema", "json_schema": said, "style": style, "excludes": ["Rom", "</think>"]}
        assert ours(tag("<f>", "</f>", part), f"<f>{city.replace('Rome', 'Paris')}</f>")
        assert not ours(tag("<f>", "</f>", part), f"<f>{city}</f>")


def test_one_token_but_some():
    tokens = [bytes([b]) for b in range(256)] + [b"<call>", b"</call>", b"word", b"</s>"]
    vocabulary = tf.Vocabulary(tokens, eos=[259], special=[256, 257])
    end = {"type": "token", "token": "</call>"}
    format = tag({"type": "token", "token": 256}, end, {"type": "exclude_token", "exclude_tokens": [97, "b"]})
    made = tf.tool_formats.structural_tag(
        {"format": format}, special=["<call>", "</call>"], token_text=lambda token: tokens[token].decode()
    )
    for written, right in [([99], True), ([258], True), ([*b"word"], True), ([97], False), ([98], False)]:
        matcher = tf.engine.Matcher(made.compile(vocabulary))
        taken = matcher.validate_tokens([256, *written, 257]) == len(written) + 2
        assert taken == right, written
    matcher.accept_tokens([256])
    assert 257 not in matcher.allowed_tokens() and 256 in matcher.allowed_tokens()


def test_whitespace_of_one_part():
    part = {"type": "json_schema", "json_schema": ARGUMENTS}
    compact, spaced = ({**part, "max_whitespace_cnt": most} for most in (0, 2))
    assert ours(compact, '{"city":"Rome"}') and not ours(compact, '{"city": "Rome"}')
    for white in ("", " ", "\n", " \t", "\r\n"):
        assert ours(spaced, f'{{{white}"city"{white}:{white}"Rome"{white}}}')
    assert (
        tf.Grammar.from_bytes(tf.tool_formats.structural_tag({"format": spaced}).to_bytes())
        .compile(BYTES)
        .matches(b'{"city" : \n"Rome"}')
    )
    assert not ours(spaced, '{"city":   "Rome"}') and not ours(spaced, '{"city": "Rome" \n }')
    both = {"type": "sequence", "elements": [compact, part]}
    assert ours(both, '{"city":"Rome"}{"city": "Rome"}')
    styled_part = tag("<f>", "</f>", compact | {"style": "minimax_xml", "json_schema": LISTED})
    assert ours(styled_part, '<f><parameter name="a">[1,2]</parameter></f>')
    assert not ours(styled_part, '<f><parameter name="a">[1, 2]</parameter></f>')


@pytest.mark.parametrize("style", STYLED)
def test_whitespace_between_arguments(style):
    city, days = STYLED[style][0], written_as(style, "days", "{}")
    part = {"type": "json_schema", "json_schema": ARGUMENTS, "style": style}

    def allowed(white, options=None, **more):
        inside = f"{white}{city}{white}{days.format(f'{white}3{white}')}{white}"
        return ours(tag("<f>", "</f>", part | more), f"<f>{inside}</f>", json_options=options)

    assert allowed("") and allowed("\t\n") and allowed(" " * 24) and not allowed(" " * 25)
    assert allowed(" " * 99, {"whitespace": "any"})
    assert allowed("\r\n", max_whitespace_cnt=2) and not allowed("\n  ", max_whitespace_cnt=2)
    assert allowed("", max_whitespace_cnt=0) and not allowed(" ", max_whitespace_cnt=0)


@pytest.mark.parametrize("style", STYLED)
@pytest.mark.parametrize("said", [{"enum": ["Rome", "Oslo"]}, {"type": "string", "pattern": "^R[a-z]+$"}])
def test_whitespace_around_texts_that_are_not_any(style, said):
    schema = {"type": "object", "properties": {"city": said}, "required": ["city"]}
    part = tag("<f>", "</f>", {"type": "json_schema", "json_schema": schema, "style": style})
    written = f"<f>{STYLED[style][0]}</f>"
    for right in ("Rome", "\nRome\n", " Rome \t"):
        assert ours(part, written.replace("Rome", right)), right
    assert not ours(part, written.replace("Rome", "\nrome"))
    assert not ours(part, written.replace("Rome", " " * 25 + "Rome"))


def test_unknown_names_in_quotes_are_any_text():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    part = tag("<f>", "</f>", {"type": "json_schema", "json_schema": schema, "style": "cohere_xml"})
    assert ours(part, f"<f>{written_as('cohere_xml', 'two words', 3)}</f>")
    assert not ours(part, f"<f>{written_as('cohere_xml', 'a', 3).replace('3', 'true')}</f>")


LISTED = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "integer"}}},
    "required": ["a"],
    "additionalProperties": False,
}


def test_whitespace_that_the_whole_tag_bounds():
    part = {"type": "json_schema", "json_schema": ARGUMENTS, "max_whitespace_cnt": 0}
    compact = {"json_options": {"whitespace": "compact"}}
    assert ours(part, '{"city":"Rome"}', **compact) and not ours(part, '{"city": "Rome"}', **compact)
