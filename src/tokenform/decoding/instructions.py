"""Additions to a chat: an instruction about the form of the answer before the text of a prompt, the beginning
of the model's turn, and tools and earlier calls that the template leaves out.

Purpose: a model derails where masks refuse what it means to write; with an instruction it mostly means what
they allow.  A chat model answers in a sentence ("The hotel has 30 rooms."); restricted to a number it writes
1000000, after "The answer is:" the right one.  A model must read about tools to call them rightly, and an
assistant's turn that was only a call would be empty.
Invariant: the instruction says nothing that the constraint does not, and is empty where it can't be short.
Messages whose template shows tools and calls are not changed.
Complexity: linear in the words; a schema is read down to `DEPTH`.  One more rendering where there are tools,
and one where there are calls.  Decided by what a small chat model writes (`docs/decisions.md`;
`benchmarks/prompts.py` measures it).
Rejected: the schema, or an outline of the document (a small model copies it); the words after the text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from tokenform.errors import LimitExceeded
from tokenform.frontends.tools.formats import FORMATS
from tokenform.frontends.tools.shown import shown_tools, written_call

MOST_CHARACTERS = 1000
"""Most characters of names, choices or a pattern in a default instruction."""
DEPTH = 3
WRITTEN = {
    "date": "a date as YYYY-MM-DD",
    "time": "a time as HH:MM:SSZ",
    "date-time": "a date and time as YYYY-MM-DDTHH:MM:SSZ",
}
"""Formats that texts mostly write in another way, and how the constraint requires them."""
_JSON = "Answer with JSON."
LEAD_IN = "The answer is:\n\n"
"""Chosen by `benchmarks/bare_values.py`; a line of its own, so that the value begins a token."""
_BARE = frozenset({"integer", "number", "boolean"})
_KINDS = {"string": "strings", "integer": "integers", "number": "numbers", "boolean": "booleans"}
Render = Callable[[list[Any], Sequence[Mapping[str, Any]]], list[int]]


def instruction(grammar: Any, show: bool | Literal["auto"]) -> str:
    """The instruction for a constraint; "" for none.

    Args:
        grammar: anything with `schema` and `tools`, as a `Grammar`.
        show: "auto" is a short instruction; True shows the whole schema, pattern or grammar; False is none.
    """
    if show is False or grammar.tools:
        return ""  # the template shows tools
    if wording := getattr(grammar, "told", None):
        return next((words for words in wording[:2] if show is True or len(words) <= MOST_CHARACTERS), "")
    try:
        schema = grammar.schema
    except LimitExceeded:  # a text that nests deeper than Python reads
        return _JSON
    if schema is not None:
        if show is True:
            return (
                f"Answer with JSON that matches this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}"
            )
        return _of_schema(schema)
    kind, value = next(iter((getattr(grammar, "form", None) or {"": None}).items()))
    if kind == "language" and isinstance(value, Mapping):
        return _of_language(value, show is True)
    source = getattr(grammar, "source", "")
    if show is True and source and kind in ("grammar", "gbnf"):
        return f"Answer with a text of this grammar:\n{source}"
    return ""


def lead_in(grammar: Any) -> str:
    """The beginning of the model's turn before a bare value (a number, a boolean, a text of a pattern), and
    before code, with its opening fence.

    "" elsewhere: models begin documents by themselves, and write strings in quotes worse after it.
    """
    if not grammar.tools and (wording := getattr(grammar, "told", None)):
        return str(wording.lead)
    return LEAD_IN if is_bare(grammar) else ""


def is_bare(grammar: Any) -> bool:
    """Whether a text is one value without quotes: a number, a boolean, or a text of a pattern."""
    if grammar.tools or getattr(grammar, "told", None):
        return False
    try:
        schema = grammar.schema
    except LimitExceeded:
        return False
    if schema is None:
        return 0 < len(_pattern(grammar)) <= MOST_CHARACTERS
    value = _target(schema, schema)
    return isinstance(value, Mapping) and str(value.get("type")) in _BARE and "enum" not in value


def has_patterns(grammar: Any) -> bool:
    """Whether some string of a constraint may have a pattern; False of a schema with none."""
    source = str(getattr(grammar, "source", ""))
    return "attern" in source or "format" in source or grammar.schema is None


def _of_schema(schema: Any) -> str:
    values = schema.get("enum") if isinstance(schema, Mapping) else None
    if isinstance(values, list):
        return _one_of([json.dumps(one, ensure_ascii=False) for one in values], False)
    for depth in range(DEPTH, 0, -1):
        fields, container = _fields(schema, schema, depth), "JSON"
        if not fields:
            fields, container = _fields(_items(schema, schema), schema, depth), "a JSON list of objects"
        if fields and len(fields) <= MOST_CHARACTERS:
            return f"Answer with {container} with the fields {fields}."
    if form := _form(schema, schema):
        return f"Answer with {form}."
    return _of_list(schema) or _of_map(schema) or _JSON


def _of_list(root: Any) -> str:
    """The words for a list of numbers, texts or booleans; "" for others."""
    schema = _target(root, root)
    if not isinstance(schema, Mapping):
        return ""
    first = schema.get("prefixItems")
    items = [*(first if isinstance(first, list) else ()), *([schema["items"]] if "items" in schema else ())]
    item_schemas = [one for one in (_target(item, root) for item in items) if isinstance(one, Mapping)]
    kinds = {_KINDS.get(str(one.get("type"))) for one in item_schemas}
    least, most = schema.get("minItems"), schema.get("maxItems")
    many = f"{least} " if isinstance(least, int) and least == most and least > 1 else ""
    return f"Answer with a JSON list of {many}{kinds.pop()}." if len(kinds) == 1 and None not in kinds else ""


def _of_map(root: Any) -> str:
    """The words for an object of any names, with numbers, texts or booleans; "" for others.

    SmolLM2-135M-Instruct wrote 12 of 43 entries of 18 texts rightly, 4 after "Answer with JSON."; none after
    words that call the keys names, for it wrote a field "name".
    """
    schema = _target(root, root)
    if not isinstance(schema, Mapping) or schema.get("properties"):
        return ""
    values = _target(schema.get("additionalProperties"), root)
    kind = _KINDS.get(str(values.get("type"))) if isinstance(values, Mapping) else None
    return f"Answer with a JSON dictionary of {kind}." if kind else ""


def _fields(schema: Any, root: Any, depth: int) -> str:
    """The names of an object's properties, with descriptions, forms and the names inside them."""
    schema = _target(schema, root)
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if depth == 0 or not isinstance(properties, Mapping):
        return ""
    return ", ".join(_field(str(name), one, root, depth) for name, one in properties.items())


def _field(name: str, schema: Any, root: Any, depth: int) -> str:
    inside = _fields(schema, root, depth - 1) or _fields(_items(schema, root), root, depth - 1)
    words = schema.get("description") if isinstance(schema, Mapping) else None
    form = _form(schema, root) or _form(_items(schema, root), root)
    notes = [one for one in (words, form, inside and f"with {inside}") if isinstance(one, str) and one]
    return f"{name} ({'; '.join(notes)})" if notes else name


def _form(schema: Any, root: Any) -> str:
    """How to write a string whose format differs from usual writing; "" for others."""
    schema = _target(schema, root)
    name = schema.get("format") if isinstance(schema, Mapping) else None
    return WRITTEN.get(name, "") if isinstance(name, str) else ""


def _items(schema: Any, root: Any) -> Any:
    schema = _target(schema, root)
    return schema.get("items") if isinstance(schema, Mapping) else None


def _target(schema: Any, root: Any) -> Any:
    """The schema behind a reference into the same document, or the non-null one of a nullable value."""
    for _ in range(2 * DEPTH):
        if not isinstance(schema, Mapping):
            return None
        reference, alternatives = schema.get("$ref"), schema.get("anyOf")
        if isinstance(reference, str) and reference.startswith("#/"):
            schema = root
            for part in reference[2:].split("/"):
                schema = schema.get(part) if isinstance(schema, Mapping) else None
        elif (
            isinstance(alternatives, list)
            and len(non_null := [one for one in alternatives if one != {"type": "null"}]) == 1
        ):
            schema = non_null[0]
        else:
            return schema
    return None


def _of_language(language: Mapping[str, Any], whole: bool) -> str:
    words, pattern = language.get("words"), _regex(language)
    if words:
        return _one_of([str(one) for one in words], whole)
    if pattern and (whole or len(pattern) <= MOST_CHARACTERS):
        return f"Answer with a text that matches the regular expression {pattern}"
    return ""


def _pattern(grammar: Any) -> str:
    """The regular expression that a grammar is; "" where it is none, or any text."""
    kind, value = next(iter((getattr(grammar, "form", None) or {"": None}).items()))
    return _regex(value) if kind == "language" and isinstance(value, Mapping) else ""


def _regex(language: Mapping[str, Any]) -> str:
    pattern = str(language.get("regex") or "")
    return "" if pattern == "(?s).*" else pattern


def _one_of(words: list[str], whole: bool) -> str:
    listed = ", ".join(words)
    return f"Answer with one of: {listed}" if whole or len(listed) <= MOST_CHARACTERS else ""


def completed(render: Render, messages: Sequence[Any], tools: Sequence[Mapping[str, Any]]) -> list[int]:
    """The ids of a conversation, with the tools and calls that its template leaves out.

    Args:
        render: the template: (messages, tools) -> ids; it may raise anything.
        tools: definitions, with the `format` in which they are called (`Definitions`).
    """
    form = getattr(tools, "format", None) or FORMATS["json"]
    chat, has_calls = list(messages), any(_calls_of(one) for one in messages)
    if has_calls and _renders_alike(render, chat, [_without_calls(one) for one in chat], tools, tools):
        chat = [_calls_as_text(one, form) for one in chat]
    if tools and _renders_alike(render, chat, chat, tools, ()):
        chat = _with_system(chat, shown_tools(tools, form))
    return render(chat, tools)


def _renders_alike(render: Render, one: list[Any], other: list[Any], tools: Any, fewer: Any) -> bool:
    """Whether the template writes both the same; a template that refuses the second does not."""
    first = render(one, tools)
    try:
        return first == render(other, fewer)
    except Exception:  # a template is a program and may raise anything
        return False


def _calls_of(message: Any) -> Any:
    return message.get("tool_calls") if isinstance(message, Mapping) else None


def _without_calls(message: Any) -> Any:
    return {name: value for name, value in message.items() if name != "tool_calls"}


def _calls_as_text(message: Any, form: Any) -> Any:
    """The message with its calls as text, after its content."""
    calls = _calls_of(message)
    if not calls:
        return message
    called = [call.get("function", call) for call in calls]
    texts = [written_call(one["name"], _arguments(one["arguments"]), form) for one in called]
    content = message.get("content")
    return {**_without_calls(message), "content": "\n".join([*([content] if content else []), *texts])}


def _arguments(arguments: Any) -> Mapping[str, Any]:
    parsed: Mapping[str, Any] = json.loads(arguments) if isinstance(arguments, str) else arguments
    return parsed


def _with_system(messages: list[Any], text: str) -> list[Any]:
    """The messages with a text at the end of the system message, or as one."""
    if messages and messages[0].get("role") == "system":
        first = messages[0]
        return [{**first, "content": f"{first.get('content', '')}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]
