"""JSON Schema as a grammar.

Purpose: hand the schema's text and the caller's choices to the core, which alone knows the rules.
Invariant: the schema reaches the core as text, so the order of its keys (which `order="declared"`
needs) and the digits of its numbers are those that the caller wrote.
Rejected: checking keywords here too (one rule in two languages drifts apart).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any, Literal

from tokenform import _core
from tokenform.errors import InvalidSchema, LimitExceeded, OptionError, SchemaWarning, warn_outside
from tokenform.frontends import forms
from tokenform.frontends.declared_keys import closed
from tokenform.frontends.forms import Form
from tokenform.frontends.grammar import Grammar, read_document, without_captures
from tokenform.frontends.json_pointer import pointed
from tokenform.frontends.json_text import read_json
from tokenform.frontends.schema_parts import NOTES
from tokenform.frontends.string_grammars import check_place
from tokenform.frontends.unicode import check_text

Schema = Mapping[str, Any] | bool | str

# How documents are written, as opposed to which of them are meant.
SPELLINGS = ("order", "whitespace", "numbers", "strings")


def json_schema(
    schema: Schema,
    *,
    order: Literal["declared", "any"] = "declared",
    whitespace: Literal["natural", "compact", "spaced", "indent", "any"] | str = "natural",
    numbers: Literal["natural", "shortest", "canonical", "any"] = "natural",
    strings: Literal["natural", "canonical", "any"] = "natural",
    formats: Literal["assert", "annotate"] = "assert",
    additional: Literal["auto", "schema", "forbid"] = "auto",
    unsupported: Literal["refuse", "report"] = "refuse",
    pattern_dialect: Literal["auto", "ecma", "python", "rust"] = "auto",
    strict: bool = False,
    registry: Mapping[str, Schema] | None = None,
    strings_in: Mapping[str, Grammar] | None = None,
) -> Grammar:
    """The grammar of the documents that a JSON Schema accepts.

    Args:
        schema: the schema as a mapping, a boolean, or JSON text.  Without `$schema` it is read as draft
            2020-12, but for a list of schemas as `items`, which is read as the drafts before that do.
        order: keys as the schema's text first names them, or in any order.
        whitespace: "natural": what a writer puts there, as the model likes: after an opening bracket, after
            a comma and before a closing bracket nothing, a space, or one line break and an indentation; after
            a colon nothing or a space; else nothing.  "compact": none; "spaced" and "indent": as `json.dumps`
            writes it, with `indent=2`; "any": whatever JSON allows in bounded runs, around the document too;
            "at most 3" (1 to 15): the same in runs of so many characters.
        numbers: "natural": integers as digits, other numbers as any writer spells them (`19.90`, `3e-4`,
            `1E+06`), with values that a double holds and at most 80 digits before the point and 40 after it;
            "shortest": of these, as `json.dumps` writes them; "canonical": as `json.dumps` and
            `JSON.stringify` write them, `1.0` for an integer too; "any": every spelling.  Moments have
            at most 9 digits of a fraction, durations 19 of a count, unless it is "any".
        strings: "natural": characters as they are, or as some writer escapes them: quotes, backslashes and
            control characters, `\\u` with lower-case digits for what is not ASCII and for `<`, `>`, `&`, and
            `\\/`; "canonical": only the escapes that JSON demands; "any": every escape that it has.
        formats: `format` is enforced, or only annotates.
        additional: undeclared properties as the schema says ("schema"), or never ("forbid").  "auto": masks
            and checks are as the schema says; what a model writes has none in objects that name properties
            and say nothing of others (`Grammar.for_writing`).
        unsupported: a keyword that can't be enforced is refused, or ignored and reported.
        pattern_dialect: whose reader `pattern` and `patternProperties` are written for: "ecma" (ECMA-262 with
            the `u` flag), "python" (`re`), "rust" (`regex`), or "auto": ECMA-262's, and what that refuses as
            the others read it, where they agree; `Grammar.report` says so.  A subschema with
            `x-pattern-dialect` says it for itself.
        strict: keys of the schema that look like a keyword and are none (`propertys`, `requird`), and
            those of others (`x-guidance`, OpenAPI's `nullable`), are refused; else they are named in
            `Grammar.report` and in a `SchemaWarning`.
        registry: schemas that `$ref` may point to, by URI; nothing is ever fetched.  The official
            meta-schemas are known without it.
        strings_in: grammars by JSON Pointer into the schema: the strings that the subschema there admits are
            the texts of the grammar, escaped as JSON asks.  The subschema says nothing else about strings.
    Raises:
        InvalidSchema, UnsupportedSchema, UnsatisfiableSchema, LimitExceeded, OptionError.
    """
    chosen = {
        "order": order,
        "whitespace": whitespace,
        "numbers": numbers,
        "strings": strings,
        "formats": formats,
        "additional": "schema" if additional == "auto" else additional,
        "unsupported": unsupported,
        "pattern_dialect": pattern_dialect,
    }
    text = schema_text(schema)
    known = _known_schemas(text, registry)
    form: Form = {"schema": text, "options": {**chosen, "strict": bool(strict), "registry": known}}
    if strings_in:
        form["schema"], form["holes"] = with_marks(text, strings_in)
        core = forms.compiled(form, "the schema")
    else:
        core = _core.json_schema(text, **chosen, strict=bool(strict), registry=known)
    warn_unknown(core.notes, " (strict=True refuses such keys)")
    narrowed = partial(_closed, form, schema) if additional == "auto" and not registry else None
    return Grammar(core, form=form, read=read_document, source=text, schema=schema, narrowed=narrowed)


def _closed(form: Form, schema: Schema) -> Grammar | None:
    """The same schema with its objects closed (`declared_keys`); None where that is no other one."""
    text = closed(form["schema"])
    if text is None:
        return None
    form = {**form, "schema": text}
    return Grammar(
        forms.compiled(form, "the schema"), form=form, read=read_document, source=text, schema=schema
    )


def warn_unknown(report: Iterable[str], advice: str = "") -> None:
    """A warning for each key that looks like a keyword and is none."""
    for line in report:
        owner, mark, rest = line.rpartition("unknown: ")
        if mark and (not owner or owner.endswith(": ")):
            warn_outside(f"{owner}{rest}{advice}", SchemaWarning)


def _known_schemas(text: str, registry: Mapping[str, Schema] | None) -> list[tuple[str, str]]:
    """URIs and texts of the schemas that `$ref` may point to."""
    if not registry and not _core.official_references(text):
        return []
    texts = {uri: schema_text(other) for uri, other in (registry or {}).items()}
    return list((meta_schemas(text, *texts.values()) | texts).items())


def known_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options by name, all of which `json_schema` has."""
    known = [*(name for name, _ in _core.json_options()), "strict", "registry"]
    for name in options or {}:
        if name not in known:
            raise OptionError(f"there is no option {name!r}; there are {', '.join(map(repr, known))}.")
    return dict(options or {})


def with_marks(text: str, strings_in: Mapping[str, Grammar]) -> tuple[str, list[Form]]:
    """The schema with a mark at each place, and the forms that the marks stand for, in their order."""
    schema = read_json(text, name="the schema", kind=InvalidSchema)
    plain = read_json(text, name="the schema", kind=InvalidSchema)
    holes: list[Form] = []
    for pointer, grammar in strings_in.items():
        if not isinstance(grammar, Grammar):
            raise OptionError(f"strings_in[{pointer!r}] must be a Grammar, not {type(grammar).__name__}.")
        place = _at(schema, pointer)
        other = sorted(set(place) - NOTES - {"type", "$comment"})
        if other:
            raise InvalidSchema(
                f"the strings at {pointer!r} have a grammar; drop {', '.join(map(repr, other))} there.",
                pointer=pointer,
                keyword=other[0],
            )
        place["format"] = f"tokenform-mark-{len(holes)}"
        form = forms.lowered(without_captures(grammar, "strings_in"))
        if "language" not in form or "ends" in form:
            check_place(plain, pointer)
        holes.append(form)
    return schema_text(schema), holes


def _at(schema: Any, pointer: str) -> dict[str, Any]:
    """The subschema at a JSON Pointer."""
    try:
        at = pointed(schema, pointer)
    except LookupError as error:
        message = f"strings_in: {pointer!r} leads nowhere in the schema; there is no {error.args[0]!r}."
        raise OptionError(message) from None
    if not isinstance(at, dict) or (pointer and not pointer.startswith("/")):
        raise OptionError(f"strings_in: {pointer!r} is no JSON Pointer to a subschema.")
    return at


def meta_schemas(*texts: str) -> dict[str, str]:
    """The official meta-schemas that schemas' texts refer to, and those that belong to them, by URI."""
    named = {found.replace("\\/", "/") for text in texts for found in _core.official_references(text)}
    if not named:
        return {}
    main = {_folder(uri) for uri in named if uri in _official()}
    return {uri: text for uri, text in _official().items() if _folder(uri) in main}


def _folder(uri: str) -> str:
    """The beginning that the documents of one version share."""
    return re.sub(r"(draft(/[0-9-]+|-[0-9]+)/).*", r"\1", uri)


@cache
def _official() -> dict[str, str]:
    """Text of every meta-schema of JSON Schema, by URI without a fragment."""
    from jsonschema_specifications import REGISTRY  # only schemas about schemas need it

    return {str(uri).rstrip("#"): json.dumps(REGISTRY.contents(uri)) for uri in REGISTRY}


def schema_text(schema: Schema) -> str:
    """The schema as JSON text, keys in their order."""
    if isinstance(schema, str):
        check_text(schema, InvalidSchema)
        return schema
    text = _core.json_text(schema)
    if text is not None:
        return text
    # the common types first: an abstract class takes longer to say yes
    if not isinstance(schema, (dict, bool)) and not isinstance(schema, Mapping):
        raise InvalidSchema(
            f"a schema is a mapping, true, false or JSON text, not {_named(schema)}.", pointer=""
        )
    try:
        return _WRITER.encode(schema)
    except RecursionError:
        raise LimitExceeded(
            "the schema is nested deeper than Python's json writes (about 300 levels); give its text, or "
            "move inner parts to $defs."
        ) from None
    except (TypeError, ValueError) as error:
        raise InvalidSchema(f"the schema can't be written as JSON: {error}.", pointer="") from None


def _named(value: Any) -> str:
    """What was given instead of a schema, and what takes it."""
    if isinstance(value, type) or hasattr(value, "json_schema") or hasattr(value, "__origin__"):
        name = getattr(value, "__name__", type(value).__name__)
        return f"the type {name}; tf.from_type makes a grammar of a type"
    return type(value).__name__


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


_WRITER = json.JSONEncoder(allow_nan=False, default=_plain)
