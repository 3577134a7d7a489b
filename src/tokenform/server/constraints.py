"""Reads the constraint of a request's fields, as one grammar.

Invariant: a request has at most one constraint beside its tools; two are refused, as is every unknown member.
Nothing is fetched: a `$ref` beyond the schema is an error of the schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tokenform.frontends import Grammar
from tokenform.integrations.grammar_compiler import GrammarCompiler
from tokenform.server.faults import Refused, about, check_names
from tokenform.server.fields import Constrained

PlacedGrammar = tuple[str, Grammar]
"""The place in the request, and its grammar."""

_KINDS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
_TYPES: dict[str, Any] = {"json": object, "choice": list | str, "structural_tag": dict | str}
_SWITCHES = {"disable_fallback", "disable_any_whitespace", "disable_additional_properties"}


class ConstraintReader:
    """Reads constraints for one model.

    Args:
        compiler: compiles and caches grammars.
        most: bytes of a constraint's text.
    """

    def __init__(self, compiler: GrammarCompiler, most: int) -> None:
        self._compiler, self._most = compiler, most

    def grammar(self, kind: str, value: Any, param: str, **options: Any) -> Grammar:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        size = len(text.encode("utf-8", errors="replace"))
        if size > self._most:
            raise Refused(
                f"{param} has {size} bytes; at most {self._most} are read.", code="too_large", param=param
            )
        with about(param):
            return self._compiler.grammar(kind, text, **options)

    def one(self, body: Constrained, form: Any, place: str) -> PlacedGrammar | None:
        """The constraint of a request's fields, the API's own (`form`, at `place`) among them."""
        found = [
            self.response_format(form, place),
            self.structured(body.structured_outputs),
            *(self._guided(body, name) for name in ("json", "regex", "choice", "grammar", "json_object")),
        ]
        constraints = [one for one in found if one is not None]
        if len(constraints) > 1:
            places = " and ".join(place for place, _ in constraints)
            raise Refused(f"{places} both bind the answer; give one of them.", param=constraints[1][0])
        return constraints[0] if constraints else None

    def response_format(self, form: Any, param: str) -> PlacedGrammar | None:
        """`response_format` of chats, and `text.format` of Responses, which has its members one level up."""
        if form is None:
            return None
        if not isinstance(form, Mapping):
            raise Refused(f"{param} is an object.", param=param)
        kind = form.get("type")
        if kind == "text":
            check_names(form, {"type"}, param)
            return None
        if kind == "json_object":
            check_names(form, {"type", "schema"}, param)
            if form.get("schema") is not None:  # as llama.cpp and Together have it
                return param, self.grammar("json", form["schema"], f"{param}/schema")
            return param, self.grammar("json_object", "", param)
        if kind == "json_schema":
            inner = form.get("json_schema")
            place, holder = (param, form) if "schema" in form else (f"{param}/json_schema", inner)
            if not isinstance(holder, Mapping):
                raise Refused(f"{place} is an object with a schema.", param=place)
            names = {"name", "description", "schema", "strict"}
            check_names(form, {"type", *names} if holder is form else {"type", "json_schema"}, param)
            check_names(holder, {"type", *names} if holder is form else names, place)
            schema = holder.get("schema", {})
            return place, self.grammar("json", schema, f"{place}/schema")
        if kind in ("structural_tag", "regex", "grammar"):
            named = {"structural_tag": "format", "regex": "pattern", "grammar": "grammar"}[kind]
            legacy = kind == "structural_tag" and "structures" in form
            check_names(form, {"type", "structures", "triggers"} if legacy else {"type", named}, param)
            value = dict(form) if kind == "structural_tag" else form.get(named)
            if not isinstance(value, str | dict):
                raise Refused(f"{param}/{named} is missing.", param=f"{param}/{named}")
            return param, self.grammar(kind, value, param if kind == "structural_tag" else f"{param}/{named}")
        kinds = "text, json_object, json_schema, structural_tag, regex or grammar"
        raise Refused(f"{param}/type {kind!r} is not known; choose {kinds}.", param=f"{param}/type")

    def structured(self, outputs: Mapping[str, Any] | None) -> PlacedGrammar | None:
        """`structured_outputs`."""
        if outputs is None:
            return None
        param = "/structured_outputs"
        members = {name: value for name, value in outputs.items() if value is not None and value is not False}
        check_names(members, {*_KINDS, *_SWITCHES}, param)
        kinds = [name for name in members if name in _KINDS]
        if len(kinds) != 1:
            listed = ", ".join(_KINDS)
            raise Refused(f"{param} takes exactly one of {listed}.", param=param)
        options: dict[str, Any] = {}
        if members.get("disable_any_whitespace"):
            options["whitespace"] = "compact"
        if members.get("disable_additional_properties"):
            options["additional"] = "forbid"
        kind = kinds[0]
        value = "" if kind == "json_object" else members[kind]
        if not isinstance(value, _TYPES.get(kind, str)):
            wanted = "a list of texts" if kind == "choice" else "a text"
            raise Refused(f"{param}/{kind} is {wanted}.", param=f"{param}/{kind}")
        if options and kind not in ("json", "json_object"):
            raise Refused(f"{', '.join(members.keys() - {kind})} is for json alone.", param=param)
        return f"{param}/{kind}", self.grammar(kind, value, f"{param}/{kind}", **options)

    def _guided(self, body: Constrained, kind: str) -> PlacedGrammar | None:
        value = getattr(body, f"guided_{kind}")
        if value is None or (value is False and kind == "json_object"):
            return None
        param = f"/guided_{kind}"
        return param, self.grammar(kind, "" if kind == "json_object" else value, param)
