"""Whether a value satisfies a schema, as the engine says.

Purpose: arguments that were read are judged by the engine that writes them, so that both agree, and so that
nothing in a caller's schema (a `pattern` that backtracks) can make reading slow.
Invariant: a value is written as JSON and followed byte by byte, once.
Complexity: linear in the value; an automaton is kept for each of the last schemas.
Rejected: `jsonschema` with Python's `re` (`^(a+)+$` takes exponential time on a text of 30 letters).
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from tokenform import _core
from tokenform.errors import TokenformError, ToolError, UnsatisfiableGrammar, UnsatisfiableSchema
from tokenform.frontends import forms
from tokenform.frontends.byte_vocabulary import byte_vocabulary
from tokenform.frontends.schemas import meta_schemas

_NOTHING = "", "nothing satisfies the schema"
_SITE = "json-schema.org/"
DRAFTS = (
    f"http://{_SITE}draft-04/schema",
    f"http://{_SITE}draft-06/schema",
    f"http://{_SITE}draft-07/schema",
    f"https://{_SITE}draft/2019-09/schema",
    f"https://{_SITE}draft/2020-12/schema",
)
_LIST_OF_ITEMS = re.compile(r'"items"\s*:\s*\[')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^"{}\[\],:\s]+')


def satisfies(value: Any, schema: Any) -> bool:
    """Whether the schema allows the value.

    Raises:
        ToolError: the engine can't judge by this schema.
    """
    return schema is True or fault(value, json.dumps(schema)) is None


@lru_cache(maxsize=256)
def report(schema: str) -> tuple[str, ...]:
    """What the engine ignores or loosens of a schema, given as JSON text, and keys that look misspelt."""
    try:
        return tuple(_core.json_schema(schema).report)
    except TokenformError:  # formats that write each argument by itself may still be able to keep it
        return ()


def fault(value: Any, schema: str) -> tuple[str, str] | None:
    """Where (a JSON Pointer into the value) and why the value does not satisfy the schema; None: it does.

    Formats are not asked for; but what is right only where they are is right, too, as calls are written with
    them: both branches of a `oneOf` of a date and a time take every string otherwise.

    schema: as JSON text, by which automata are kept.
    Raises:
        ToolError: the engine can't judge by this schema.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        data = text.encode()
    except UnicodeEncodeError:
        return "", "a string in them is no Unicode text"
    except (TypeError, ValueError, RecursionError) as error:
        return "", str(error)
    try:
        wrong = _fault_of(data, schema, "annotate")
        if wrong is None or '"format"' not in schema:
            return wrong
        asserted = _fault_of(data, schema, "assert")
    except (TokenformError, RecursionError, ValueError) as error:
        raise ToolError(
            f"the engine can't judge by this schema: {error} (validate=False reads without judging)",
            pointer=getattr(error, "pointer", None),
            keyword=getattr(error, "keyword", None),
        ) from None
    return asserted and (asserted if wrong == _NOTHING else wrong)


def _fault_of(data: bytes, schema: str, formats: str) -> tuple[str, str] | None:
    """The same for a document, where formats are asserted or are annotations."""
    try:
        automaton = _automaton(schema, formats)
    except UnsatisfiableSchema:
        return _NOTHING
    verdict = None if automaton.matches(data) else automaton.check(data)
    if verdict is None:
        return None
    offset, expected, place = verdict
    before = data[:offset].decode(errors="ignore")
    found = data[offset : offset + 20].decode(errors="ignore")
    wanted = " or ".join(expected[:4]) + (" or more" if len(expected) > 4 else "")
    path = _path(before)
    if path and found.startswith("}") and not (place or "").endswith(f"/{path[-1]}"):
        path.pop()  # the value before is right: the object lacks something
    pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return pointer, f"expected {wanted or 'nothing'}, not {found!r}"


@lru_cache(maxsize=1024)
def possible(schema: str, strings: bool) -> bool:
    """Whether some string (strings) or some other value satisfies the schema; where it is unclear, yes."""
    try:
        if strings:
            forms.compiled({"language": {"string": schema}}, "strings")
        else:
            kinds = ["integer", "number", "boolean", "null", "array", "object"]
            _core.json_schema(json.dumps({"type": kinds, "allOf": [json.loads(schema)]}))
    except (UnsatisfiableSchema, UnsatisfiableGrammar):
        return False
    except TokenformError:
        return True
    return True


def is_schema(text: str, draft: Any) -> bool:
    """Whether a JSON text is a schema by the official meta-schema of that URI, by that of 2020-12 where the
    URI is somebody's own or there is none; False where that is unclear.

    A fiftieth of the time of `jsonschema`, which can say what is wrong.
    """
    if draft is None and has_item_lists(text):
        draft = DRAFTS[3]  # as `json_schema` reads it: 2020-12 has no list there
    uri = draft.removesuffix("#") if isinstance(draft, str) else "" if draft is None else _SITE
    if uri not in DRAFTS:
        if _SITE in uri.lower():
            return False
        uri = DRAFTS[-1]
    try:
        return _meta_schema(uri).matches(text.encode())
    except TokenformError:
        return False


def has_item_lists(text: str) -> bool:
    """Whether a list stands as `items` somewhere in a schema's text."""
    return _LIST_OF_ITEMS.search(text) is not None


@lru_cache(maxsize=len(DRAFTS))
def _meta_schema(uri: str) -> _core.TokenAutomaton:
    text = json.dumps({"$ref": uri})
    return _compiled(text, registry=list(meta_schemas(text).items()))


@lru_cache(maxsize=256)
def _automaton(schema: str, formats: str) -> _core.TokenAutomaton:
    return _compiled(schema, formats=formats)


def _compiled(schema: str, formats: str = "annotate", **options: Any) -> _core.TokenAutomaton:
    """The automaton of every text of a document."""
    grammar = _core.json_schema(
        schema, order="any", whitespace="any", numbers="any", strings="any", formats=formats, **options
    )
    return grammar.compile(byte_vocabulary())


def _path(text: str) -> list[str | int]:
    """The keys and indices of the place where a JSON text breaks off."""
    path: list[str | int] = []
    expects_key: list[bool] = []
    for found in _TOKEN.finditer(text):
        token = found.group()
        if token in "{[":
            path.append(0)
            expects_key.append(token == "{")
        elif token in "}]" and path:
            path.pop()
            expects_key.pop()
        elif token == "," and path:
            last = path[-1]
            if isinstance(last, int):
                path[-1] = last + 1
            else:
                expects_key[-1] = True
        elif path and expects_key[-1] and token.startswith('"') and len(token) > 1:
            path[-1] = str(json.loads(token))
            expects_key[-1] = False
    if path and expects_key[-1]:  # a key is being written: the object is meant
        path.pop()
    return path
