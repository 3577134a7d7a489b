"""The requests of the page: bodies as checked values.

Invariant: a field that is unknown, of another type or too large is an `OptionError` that names it; no request
can name code, a file or an address.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from tokenform.engine import Grammar, Limits
from tokenform.errors import OptionError, TokenformError
from tokenform.frontends import choice
from tokenform.frontends.grammar_text import grammar_of_text
from tokenform.frontends.json_text import read_json
from tokenform.frontends.schemas import SPELLINGS
from tokenform.frontends.tools import tools
from tokenform.server.faults import refused
from tokenform.server.fields import Strict
from tokenform.server.messages import read_messages

BODY = 1 << 18
"""Most bytes of a body."""
SOURCE, TEXT, PROMPT = 1 << 16, 1 << 15, 1 << 13
"""Most characters of a constraint, a document, a prompt."""
SOURCES = 60
"""Most constraints that one request compares."""
LIMITS = Limits(work=20_000_000)
"""Of a call of the engine, for which a page waits while its user types."""
OPTIONS: dict[str, tuple[str, ...]] = {"schema": SPELLINGS, "tools": ("format", "tool_choice")}
"""Of `json_schema` and `tools`, by the kind of constraint."""
CACHED = 128
"""Cached grammars."""

Source = Annotated[str, Field(max_length=SOURCE)]
Seed = Annotated[int, Field(ge=0, le=1 << 53)]
Temperature = Annotated[float, Field(ge=0, le=5)]
_Query = TypeVar("_Query", bound="Query")


class ConstraintQuery(Strict):
    """A constraint as text: choices are lines, tools the JSON list of definitions."""

    kind: Literal["schema", "regex", "choices", "lark", "gbnf", "tools"]
    source: Source = ""
    options: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_options(self) -> ConstraintQuery:
        for name in self.options:
            if name not in OPTIONS.get(self.kind, ()):
                raise ValueError(f"there is no option {name!r} for {self.kind}")
        return self

    @property
    def grammar(self) -> Grammar:
        """Raises the errors of the constraint."""
        return _grammar(self.kind, self.source, tuple(sorted(self.options.items())))


class Query(Strict):
    """A request; the base of those with more fields.

    Attributes:
        text: the document so far.
        prompt: what the model reads before it.
        messages: the prompt is chat messages in JSON.
    """

    constraint: ConstraintQuery
    text: Annotated[str, Field(max_length=TEXT)] = ""
    prompt: Annotated[str, Field(max_length=PROMPT)] = ""
    messages: bool = False

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, data: Any) -> Any:
        """A number that the page leaves out is null."""
        if not isinstance(data, dict):
            return data
        return {name: value for name, value in data.items() if value is not None}

    @property
    def model_prompt(self) -> Any:
        """The prompt as a generator takes it.

        Raises:
            OptionError, Refused: it is to be chat messages, and is none.
        """
        if not self.messages:
            return self.prompt
        listed = read_json(self.prompt, name="the prompt", kind=OptionError)
        if not isinstance(listed, list):
            raise OptionError("the prompt is a JSON array of chat messages here.")
        return read_messages(listed, "")

    def respelled(self) -> Grammar | None:
        """A schema's documents in any order and spelling; None for other constraints."""
        if self.constraint.kind != "schema":
            return None
        return self.of(self.constraint.source, dict.fromkeys(SPELLINGS, "any")).grammar

    def of(self, source: str, options: dict[str, str] | None = None) -> ConstraintQuery:
        """A constraint of the same kind."""
        own = self.constraint
        return ConstraintQuery(
            kind=own.kind, source=source, options=own.options if options is None else options
        )


class ReachQuery(Query):
    """How far other constraints of the kind accept the document."""

    sources: Annotated[list[Source], Field(max_length=SOURCES)] = Field(default_factory=list)


def read(body: bytes, kind: type[_Query]) -> _Query:
    """The request of a body.

    Raises:
        OptionError: it is no such request, or too large.
    """
    try:
        data = json.loads(body)
        json.dumps(data, ensure_ascii=False).encode()  # half a character can come as an escape alone
        return kind.model_validate(data)
    except ValidationError as error:
        raise OptionError(str(refused(error))) from None
    except (ValueError, RecursionError) as error:
        raise OptionError(f"the body is no JSON: {error}.") from None


@lru_cache(maxsize=CACHED)
def _grammar(kind: str, source: str, options: tuple[tuple[str, str], ...]) -> Grammar:
    if kind == "choices":
        return choice([line for line in source.split("\n") if line])
    if kind != "tools":
        return grammar_of_text("json" if kind == "schema" else kind, source, **dict(options))
    listed = read_json(source, name="the tools", kind=OptionError)
    if not isinstance(listed, list):
        raise OptionError("tools are a JSON array of definitions.")
    chosen: Any = dict(options)
    return tools(listed, **chosen)


def error_fields(error: TokenformError) -> dict[str, Any]:
    """The fields of an error for the page, with its place."""
    place = {"pointer": error.pointer, "keyword": error.keyword, "line": error.line, "column": error.column}
    return {"kind": type(error).__name__, "message": str(error), **place}
