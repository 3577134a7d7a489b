"""Forms: constraints as plain data, so that they can be put together before the engine sees them.

Purpose: what `|`, `&`, `+`, `~`, a name in a Lark text and a field of a schema have in common.  A form is one
of
  {"language": L}                          a regular language
  {"language": {"until": …}, "ends": [text, ...]}  the same; each of these ends it as a special token, too
  {"schema": text, "options": {...}}       the documents of a JSON Schema; "holes": forms of marked strings
  {"grammar": structure}                   a grammar; its "parts" bind declared terminals to forms
  {"gbnf": text, "start": name}            a grammar in GBNF
  {"counted": language, "tokens": most}    a language whose text ends after so many tokens, as soon as it may
  {"special": text, "spelled": how}        one special token; its text in a vocabulary that does not know it
                                           ("unknown"), there and before more text where it ends texts (true),
                                           or nowhere (false)
  {"special": ids}, {"but": names}, {"other": names}
                                           one of these tokens; one that is none of them; any number of such.
                                           ids: a number, or a list of them and of pairs [first, last]; names:
                                           the same, and texts of tokens
  {"sequence": [form, ...]}, {"choice": [form, ...]}
  {"branches": [{"head": text, "rest": form}, ...]}  each form behind its text, read when a text comes to it;
                                           or the number of a list of branches that goes beside the form
and a language L one of
  {"literal": text}, {"words": [text, ...]}, {"regex": pattern, "dialect": name}, {"string": schema text},
  {"spans": [chunk, ...]}, {"spans": text} (each character a chunk), {"any": true}, {"not": L},
  {"repeat": [L, least, most]},
  {"or": [L, ...]}, {"and": [L, ...]}, {"concat": [L, ...]}, {"until": [L, ends]}.
Invariant: forms are never changed once they are made; equal forms accept the same texts.
Source: `compose/form.rs` and `compose/language.rs` read them.
Rejected: combining the compiled objects (each of them has its own arena of states).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from tokenform import _core
from tokenform.errors import LimitExceeded

Form = dict[str, Any]
Language = dict[str, Any]

ANY: Language = {"any": True}

# Values of a schema's options that leave the writer more choice than others.
_OPEN = {
    "order": ("any",),
    "whitespace": ("natural", "any"),
    "numbers": ("natural", "any"),
    "strings": ("natural", "any"),
    "additional": ("schema",),
}

_ABSENT = {
    "whitespace": "natural",
    "numbers": "natural",
    "strings": "natural",
    "additional": "schema",
}  # by default

_MOST_TOKENS = 2**31 - 1
_LONG = 40  # characters of a name in messages
_NAME = 200  # and of the name of a whole
_DEEP = 3  # levels of a language that such a name shows
_SHOWN = 4  # and parts of one level


def literal(text: str) -> Language:
    """The text alone."""
    return {"literal": text}


def containing(ends: Language) -> Language:
    """Texts in which a text of the language occurs."""
    return {"concat": [ANY, ends, ANY]}


def sequence(forms: Sequence[Form]) -> Form:
    """The forms one after the other; neighbouring languages become one."""
    flat: list[Form] = []
    for regular, run in groupby(
        (part for form in forms for part in form.get("sequence", [form])), is_language
    ):
        neighbours = list(run)
        flat += [{"language": joined("concat", neighbours)}] if regular else neighbours
    return flat[0] if len(flat) == 1 else {"sequence": flat}


def choice(forms: Sequence[Form]) -> Form:
    """Any of the forms; the languages among them become one."""
    flat = [part for form in forms for part in form.get("choice", [form])]
    others = [part for part in flat if not is_language(part)]
    if len(others) < len(flat):
        others.insert(0, {"language": joined("or", filter(is_language, flat))})
    return others[0] if len(others) == 1 else {"choice": others}


def counted(language: Language, tokens: int) -> Form:
    """Texts of a language that end after so many tokens, as soon as they may."""
    return {"counted": language, "tokens": min(tokens, _MOST_TOKENS)}


def is_language(form: Form) -> bool:
    """Whether a form is a regular language whatever the vocabulary."""
    return "language" in form and "unless" not in form and "ends" not in form


def joined(operator: str, regular: Iterable[Form]) -> Language:
    """The languages of the forms under an operator; those that are under it already are its own operands."""
    languages = [form["language"] for form in regular]
    operands = [part for language in languages for part in language.get(operator, [language])]
    return languages[0] if len(languages) == 1 else {operator: operands}


def lowered(form: Form) -> Form:
    """The form without "sequence" and "choice", which become rules of a grammar."""
    return Rules().grammar(form) if "sequence" in form or "choice" in form else form


def compiled(form: Form, name: str, lists: Sequence[_core.Branches] = ()) -> _core.Grammar:
    """The core's grammar of a form; `name` is what its messages call it.

    lists: the branches that the form names by their numbers.

    Raises:
        LimitExceeded: constraints stand too deep inside one another.
    """
    try:
        text = written(lowered(form))
    except RecursionError:
        raise LimitExceeded(f"{_short(name)} has constraints too deep inside one another.") from None
    return composite(text, lists, name)


def composite(text: str, lists: Sequence[_core.Branches], name: str) -> _core.Grammar:
    """The same of a form's JSON text."""
    return _core.composite(text, _short(name), list(lists))


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME - 3]}..."


def written(form: Mapping[str, Any]) -> str:
    """A form as JSON text; unlike one call of `json` it leaves other threads their turn meanwhile."""
    text = _core.json_text(form)
    return json.dumps(form) if text is None else text


def narrowed(form: Form, options: Mapping[str, str]) -> Form | None:
    """The form whose schemas have these options where they leave their writer a choice; None: nowhere.

    >>> narrowed({"schema": "{}", "options": {"whitespace": "natural"}}, {"whitespace": "spaced"})
    {'schema': '{}', 'options': {'whitespace': 'spaced'}}
    """
    changed = False

    def narrow(part: dict[str, Any]) -> dict[str, Any]:
        nonlocal changed
        own = part.get("options")
        if not isinstance(part.get("schema"), str) or not isinstance(own, dict):
            return part
        chosen = narrower(own, options)
        changed = changed or bool(chosen)
        return {**part, "options": {**own, **chosen}}

    made: Form = json.loads(written(form), object_hook=narrow)
    return made if changed else None


def narrower(own: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Those of the options for which others, which are given, leave a choice."""
    return {
        name: value for name, value in options.items() if own.get(name, _ABSENT.get(name, "")) in _OPEN[name]
    }


class Rules:
    """The rules of a grammar without a lexer, put together."""

    def __init__(self) -> None:
        self.rules: list[dict[str, Any]] = []
        self.orders: list[dict[str, Any]] = []
        self.parts: dict[str, Form] = {}
        self._known: dict[str, str] = {}
        self._names = itertools.count()

    def grammar(self, form: Form) -> Form:
        """The grammar whose texts are the form's."""
        self.rule("start", [[self.symbol(form)]])
        return self.finished("start")

    def finished(self, start: str) -> Form:
        structure = {
            "terminals": [],
            "rules": self.rules,
            "orders": self.orders,
            "ignore": [],
            "declare": list(self.parts),
            "start": start,
            "lexer": "dynamic",
            "indenter": None,
            "parts": self.parts,
        }
        return {"grammar": structure}

    def rule(self, name: str, expansions: Sequence[Sequence[str]]) -> str:
        """Adds the expansions of a rule; without any no text is of it: it leads to itself alone."""
        for order, expansion in enumerate(expansions or [[name]]):
            entry = {"origin": name, "expansion": list(expansion), "priority": 0, "order": order}
            self.rules.append(entry)
        return name

    def any_order(
        self, members: Sequence[tuple[str, bool]], others: str | None, separator: str | None
    ) -> str:
        """Adds a rule whose members, (symbol, required) each, come in any order, none twice.

        others: what may come besides, anywhere and any number of times.  separator: stands between two.
        """
        name = f"members in any order {len(self.orders)}"
        entry = {"origin": name, "members": members, "others": others, "separator": separator}
        self.orders.append(entry)
        return name

    def fresh(self) -> str:
        """A name that is given once: the rule of that name may be added after those within it."""
        return f"rule {next(self._names)}"

    def symbol(self, form: Form) -> str:
        """The name of a rule or terminal for a form."""
        if "sequence" in form:
            return self.rule(self.fresh(), [[self.symbol(part) for part in form["sequence"]]])
        if "choice" in form:
            name = self.fresh()
            return self.rule(name, [[self.symbol(part)] for part in form["choice"]])
        key = written(form)
        return self._known.get(key) or self.known(form, key, title(form))

    def known(self, form: Form, key: str, named: str) -> str:
        """The same for a form of which `written` and `title` are known."""
        if key not in self._known:
            name = named
            while name in self.parts:
                name = f"{named} ({len(self.parts)})"
            self._known[key] = name
            self.parts[name] = form
        return self._known[key]


def title(form: Form) -> str:
    """A name for messages."""
    if "special" in form:
        return f"the special token {form['special']}"
    if "schema" in form or "slot" in form:
        return "JSON"
    if "branches" in form:
        return "one of many"
    if "grammar" in form or "gbnf" in form:
        return "a grammar"
    if "counted" in form:
        return f"at most {form['tokens']} tokens of {in_words(form['counted'])}"
    if "language" not in form:
        return f"tokens but {form.get('but', form.get('other'))}"
    return in_words(form["language"])


def in_words(language: Language) -> str:
    """A language as a message has it, in at most `_LONG` characters."""
    text = _in_words(language, 0)
    return text if len(text) <= _LONG else text[: _LONG - 3] + "..."


def _in_words(language: Language, depth: int) -> str:
    (kind, value), *_ = language.items()
    if depth > _DEEP:
        return "..."
    if kind in ("or", "and", "concat"):
        parts = [_in_words(part, depth + 1) for part in value[:_SHOWN]]
        more = ["..."] if len(value) > _SHOWN else []
        joined = {"or": " or ", "and": " and ", "concat": " "}[kind].join(parts + more)
        return f"({joined})" if depth else joined
    match kind:
        case "literal":
            return json.dumps(value, ensure_ascii=False)
        case "words":
            return " or ".join(json.dumps(word, ensure_ascii=False) for word in value[:_SHOWN])
        case "regex":
            return f"/{value}/"
        case "not":
            return f"anything but {_in_words(value, depth + 1)}"
        case "repeat":
            return f"{_in_words(value[0], depth + 1)} again and again"
        case "until":
            return f"text up to {_in_words(value[1], depth + 1)}"
        case "string":
            return "a JSON string"
        case "spans":
            return "a span of the document"
    return "any text"
