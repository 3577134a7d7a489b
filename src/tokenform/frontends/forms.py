"""Forms: constraints as plain data, so that they can be put together before the engine sees them.

Purpose: what `|`, `&`, `+`, `~`, a name in a Lark text and a field of a schema have in common.  A form is one
of
  {"language": L}                          a regular language
  {"schema": text, "options": {...}}       the documents of a JSON Schema; "holes": forms of marked strings
  {"grammar": structure}                   a grammar; its "parts" bind declared terminals to forms
  {"gbnf": text, "start": name}            a grammar in GBNF
  {"special": text, "spelled": bool}       one special token; without it in a vocabulary its text, or nothing
  {"sequence": [form, ...]}, {"choice": [form, ...]}
and a language L one of
  {"literal": text}, {"words": [text, ...]}, {"regex": pattern, "dialect": name}, {"string": schema text},
  {"spans": [chunk, ...]}, {"any": true}, {"not": L}, {"repeat": [L, least, most]},
  {"or": [L, ...]}, {"and": [L, ...]}, {"concat": [L, ...]}, {"until": [L, ends]}.
Invariant: forms are never changed once they are made; equal forms accept the same texts.
Complexity: linear in the form.
Source: `compose/form.rs` and `compose/language.rs` read them.
Rejected: combining the compiled objects (each of them has its own arena of states).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tokenform import _core

Form = dict[str, Any]
Language = dict[str, Any]

ANY: Language = {"any": True}


def literal(text: str) -> Language:
    """The text alone."""
    return {"literal": text}


def containing(ends: Language) -> Language:
    """Texts in which a text of the language occurs."""
    return {"concat": [ANY, ends, ANY]}


def sequence(forms: Sequence[Form]) -> Form:
    """The forms one after the other; neighbouring languages become one."""
    flat: list[Form] = []
    for form in forms:
        for part in form.get("sequence", [form]):
            if flat and "language" in part and "language" in flat[-1]:
                flat[-1] = {"language": _joined("concat", flat[-1]["language"], part["language"])}
            else:
                flat.append(part)
    return flat[0] if len(flat) == 1 else {"sequence": flat}


def choice(forms: Sequence[Form]) -> Form:
    """Any of the forms; the languages among them become one."""
    flat = [part for form in forms for part in form.get("choice", [form])]
    languages = [part["language"] for part in flat if "language" in part]
    others = [part for part in flat if "language" not in part]
    if languages:
        joined = languages[0]
        for language in languages[1:]:
            joined = _joined("or", joined, language)
        others.insert(0, {"language": joined})
    return others[0] if len(others) == 1 else {"choice": others}


def _joined(operator: str, first: Language, second: Language) -> Language:
    return {operator: [*first.get(operator, [first]), second]}


def lowered(form: Form) -> Form:
    """The form without "sequence" and "choice", which become rules of a grammar."""
    return Rules().grammar(form) if "sequence" in form or "choice" in form else form


def compiled(form: Form, name: str) -> _core.Grammar:
    """The core's grammar of a form; `name` is what its messages call it."""
    return _core.composite(json.dumps(lowered(form)), name)


class Rules:
    """The rules of a grammar without a lexer, put together."""

    def __init__(self) -> None:
        self.rules: list[dict[str, Any]] = []
        self.parts: dict[str, Form] = {}
        self._known: dict[str, str] = {}

    def grammar(self, form: Form) -> Form:
        """The grammar whose texts are the form's."""
        self.rule("start", [[self.symbol(form)]])
        return self.finished("start")

    def finished(self, start: str) -> Form:
        structure = {
            "terminals": [],
            "rules": self.rules,
            "ignore": [],
            "declare": list(self.parts),
            "start": start,
            "lexer": "dynamic",
            "indenter": None,
            "parts": self.parts,
        }
        return {"grammar": structure}

    def rule(self, name: str, expansions: Sequence[Sequence[str]]) -> str:
        """Adds the expansions of a rule."""
        for order, expansion in enumerate(expansions):
            entry = {"origin": name, "expansion": list(expansion), "priority": 0, "order": order}
            self.rules.append(entry)
        return name

    def fresh(self) -> str:
        """A name that no rule has."""
        return f"rule {len(self.rules)}.{len(self.parts)}"

    def symbol(self, form: Form) -> str:
        """The name of a rule or terminal for a form."""
        if "sequence" in form:
            return self.rule(self.fresh(), [[self.symbol(part) for part in form["sequence"]]])
        if "choice" in form:
            name = self.fresh()
            return self.rule(name, [[self.symbol(part)] for part in form["choice"]])
        key = json.dumps(form)
        if key not in self._known:
            self._known[key] = name = _title(form, len(self.parts))
            self.parts[name] = form
        return self._known[key]


def _title(form: Form, number: int) -> str:
    """A name for messages; unique by its number."""
    if "special" in form:
        return f"the special token {form['special']} ({number})"
    if "schema" in form:
        return f"JSON ({number})"
    if "grammar" in form or "gbnf" in form:
        return f"grammar ({number})"
    text = json.dumps(form["language"], ensure_ascii=False)
    if "literal" in form["language"]:
        text = json.dumps(form["language"]["literal"], ensure_ascii=False)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({number})"
