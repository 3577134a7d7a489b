"""A tokenizer's `response_template` as a format.

Purpose: transformers' tokenizers may say how a turn is read, as regions with openers, closers and a parser
for what stands between.  `response_format` turns the region of the calls into a layout, so that a model whose
format has no file here is written, read and streamed all the same.
Invariant: what the layout's grammar writes, transformers' `parse_response` reads as the same calls (but for
whitespace at the edges of raw values, which it strips); a template that says more than a layout can is
refused with the field that does.
Complexity: linear in the template; an opener or closer with several spellings gives a layout for each, up to
`SPELLINGS`.
Source: transformers 5, `utils/chat_parsing/` (`response_templates.py`, `content_parsers.py`).
Rejected: running the template's own regular expressions over the output (they backtrack, have no grammar).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends.tools.layout import (
    Format,
    Id,
    JsonArguments,
    JsonCall,
    MarkedArguments,
    Name,
    Part,
    Tagged,
    Wire,
)
from tokenform.frontends.tools.literal_pattern import Group, Piece, spellings
from tokenform.frontends.tools.response_schema import REASONING, check_shape, schema_format

SPELLINGS = 16
_FIELD = "tool_calls"
# What is read of a template; what else it says is left to the reader of each field.
_SHAPE = """{"type": "object", "required": ["fields"], "properties": {"fields": {"type": "object",
  "additionalProperties": {"type": "object", "properties": {
    "open": {"$ref": "#/$defs/texts"}, "close": {"$ref": "#/$defs/texts"},
    "open_pattern": {"type": "string"}, "close_pattern": {"type": "string"}, "content": {"type": "string"},
    "content_args": {"type": "object", "properties": {
      "string_delims": {"type": "array", "items":
        {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}},
      "tag_pattern": {"type": "string"},
      "value_parser": {"type": ["object", "null"], "properties": {"args": {"type": "object"}}}}}}}}},
  "$defs": {"texts": {"type": ["string", "array", "null"], "items": {"type": "string"}}}}"""
# What looks like a special token; whether it is one, the vocabulary says.
TOKEN = re.compile(r"<\|[^<>|\s]*\|?>|<[^<>|\s]+\|>|</?[\w:.-]+>|\[/?[A-Z][A-Z_]*\]")


def response_format(template: Mapping[str, Any], tokens: Iterable[str] = ()) -> Format:
    """The format of a `response_template`, or of a `response_schema` as tokenizers had before.

    Args:
        template: the tokenizer's `response_template`.
        tokens: the vocabulary's added tokens; without them, what looks like a special token is taken for one.
    Raises:
        ToolError: the template has no region of calls, or one that no layout says exactly; the message names
            the field.
    """
    if not isinstance(template, Mapping):
        raise ToolError(f"a response template is a mapping, not {type(template).__name__}")
    if "fields" not in template and "properties" in template:
        return schema_format(template)
    fields = template.get("fields")
    if not isinstance(fields, Mapping) or _FIELD not in fields:
        raise ToolError(f"the response template has no field {_FIELD!r}: it says nothing of tool calls")
    check_shape(template, _SHAPE, "response template")
    field = fields[_FIELD]
    wires = _wires(field)
    reasoning = next((_fence(fields[name], name) for name in REASONING if name in fields), None)
    content = fields.get("content", {})
    fences = _texts(content, "open", "content") if "open" in content else ()
    ends = _ends(content, "content")
    known = tuple(tokens)
    literals = [text for wire in wires for text in wire.literals]
    literals += [*(reasoning or ()), *fences, *ends]
    return Format(
        name="response_template",
        models="any model whose tokenizer has a response template",
        wire=wires[0],
        also=tuple(wires[1:]),
        embedded=tuple(dict.fromkeys(_special(literals, known))),
        reasoning=reasoning or ("<think>", "</think>"),
        dropped=tuple(dict.fromkeys((*fences, *ends))),
    )


def _wires(field: Mapping[str, Any]) -> list[Wire]:
    """The layouts of the region of calls, the template's first spelling first."""
    openers, closers = _edges(field, "open"), _edges(field, "close") or [[]]
    if not openers:
        raise _refused("it has no opener")
    whole = field.get("transform_each") is True
    wires = []
    for opener in openers:
        for closer in closers:
            if any(isinstance(piece, Group) for piece in closer):
                raise _refused("its closer has a group")
            close = "".join(piece for piece in closer if isinstance(piece, str))
            head = tuple(_part(piece) for piece in opener)
            if whole:
                if len(head) > 1 or not isinstance(head[0], str):
                    raise _refused("the opener of its list has a group")
                section = (head[0] + "[", "]" + close)
                wires.append(Wire(call=_body(field, False), section=section, between=", "))
            else:
                named = any(isinstance(part, Name) for part in head)
                end = (close,) if close else ()
                wires.append(Wire(call=(*head, *_body(field, named), *end), between="\n"))
    return wires[:SPELLINGS]


def _part(piece: Piece) -> Part:
    if isinstance(piece, str):
        return piece
    if piece.name == "name":
        return Name()
    if piece.name in ("id", "call_id", "tool_call_id"):
        return Id(piece.pattern)
    raise _refused(f"the group {piece.name!r} of its opener is neither a name nor an id")


def _body(field: Mapping[str, Any], named: bool) -> tuple[Part, ...]:
    """What stands between the opener and the closer; `named`: the opener has the name."""
    content, options = field.get("content", "text"), field.get("content_args", {})
    name, arguments = _keys(field)
    if content == "json":
        if not named:
            if options.get("unquoted_keys") or options.get("string_delims"):
                raise _refused("a call that is one object can't have keys without quotes")
            return (JsonCall(name, arguments),)
        if arguments:
            raise _refused("the arguments are a part of the object that follows the name")
        return (_json_arguments(options),)
    if content == "xml-inline" and named and not arguments:
        return (_tagged(options),)
    raise _refused(f"content {content!r} is no layout of calls")


def _json_arguments(options: Mapping[str, Any]) -> Part:
    delimiters = options.get("string_delims", [])
    if not options.get("unquoted_keys") and not delimiters:
        return JsonArguments()
    if len(delimiters) != 1 or not options.get("unquoted_keys"):
        raise _refused("only one kind of quote, with keys that have none, is a layout")
    opened, closed = delimiters[0]
    return MarkedArguments(opened, closed)


def _keys(field: Mapping[str, Any]) -> tuple[str, str]:
    """Where name and arguments come from: keys of the parsed content; "" where the opener or all of it."""
    transform = field.get("transform")
    if transform is None:
        return "name", "arguments"
    function = transform.get("function", transform) if isinstance(transform, Mapping) else transform
    if function == "{content}":
        return "name", "arguments"
    if not isinstance(function, Mapping) or not {"name", "arguments"} <= set(function):
        raise _refused("its transform gives no function with a name and arguments")
    found = []
    for key in ("name", "arguments"):
        path = re.fullmatch(r"\{([\w.]+)\}", str(function[key]))
        steps = path.group(1).split(".") if path else ["", "", ""]
        if steps[0] == "content":
            steps = steps[1:]
        if len(steps) > 1:
            raise _refused(f"its transform takes the {key} from {function[key]!r}")
        found.append(steps[0] if steps else "")
    return found[0], found[1]


def _tagged(options: Mapping[str, Any]) -> Tagged:
    """The elements of `xml-inline`."""
    parser = options.get("value_parser") or {"name": "text"}
    if parser.get("name", "text") not in ("text", "json") or options.get("merge_duplicates"):
        raise _refused("its values are neither text nor JSON")
    if parser.get("name") == "json" and not parser.get("args", {}).get("allow_non_json"):
        raise _refused("its strings are written as JSON, each in an element of its own")
    pieces = _pattern(str(options.get("tag_pattern", "")), "tag_pattern")[0]
    names = [piece.name if isinstance(piece, Group) else "" for piece in pieces]
    if [name for name in names if name] != ["key", "value"]:
        raise _refused("its tag_pattern has no key followed by a value")
    key, value = names.index("key"), names.index("value")
    before, middle, after = (
        "".join(str(p) for p in part) for part in (pieces[:key], pieces[key + 1 : value], pieces[value + 1 :])
    )
    if not before.strip() or not middle.strip() or not after.strip():
        raise _refused("nothing marks the edges of its elements")
    return Tagged(before=before, middle=middle, after=after + "\n", python_words=True)


def _fence(field: Mapping[str, Any], name: str) -> tuple[str, str]:
    """What opens and closes a region of plain text."""
    opened, closed = _texts(field, "open", name), _ends(field, name)
    if not opened or not closed:
        raise _refused("it is not fenced", name)
    return opened[0], closed[0]


def _edges(field: Mapping[str, Any], side: str, name: str = _FIELD) -> list[list[Piece]]:
    """The spellings of an opener or closer, each as literals and groups."""
    edge = field.get(side)
    if edge is not None:
        return [[text] for text in ([edge] if isinstance(edge, str) else edge)]
    pattern = field.get(f"{side}_pattern")
    return [] if pattern is None else _pattern(str(pattern), f"{side}_pattern", name)


def _texts(field: Mapping[str, Any], side: str, name: str) -> tuple[str, ...]:
    found = []
    for pieces in _edges(field, side, name):
        if any(isinstance(piece, Group) for piece in pieces):
            raise _refused(f"its {side} has a group", name)
        found.append("".join(str(piece) for piece in pieces))
    return tuple(text for text in found if text)


def _ends(field: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(text.strip() for text in _texts(field, "close", name) if text.strip())


def _pattern(pattern: str, key: str, name: str = _FIELD) -> list[list[Piece]]:
    found = spellings(pattern, SPELLINGS)
    if found is None:
        raise _refused(f"{key} {pattern!r} is no row of literals and groups", name)
    return found


def _special(literals: Sequence[str], tokens: Sequence[str]) -> list[str]:
    """The special tokens in the literals."""
    if tokens:
        return [token for token in tokens if any(token in text for text in literals)]
    return [token for text in literals for token in TOKEN.findall(text)]


def _refused(why: str, name: str = _FIELD) -> ToolError:
    return ToolError(
        f"the response template's field {name!r} can't be read as a tool format: {why}; name a format with"
        " format=, or write one (tf.tools.Format)"
    )
