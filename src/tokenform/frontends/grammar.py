"""Grammar: a constraint as a value, before any vocabulary is known.

Purpose: what every frontend returns.  It pairs the core's grammar (which texts are
accepted) with the way to read an accepted text back (what the text means).
Invariant: a grammar never changes; compiling it twice for one vocabulary gives one
automaton, so masks that were computed once are shared by everybody who holds the grammar.  What `|` and `+`
put together is read when it is used; `&` and `~` read at once, since they may leave no text.
Complexity: `compile` is one dictionary lookup after the first call, and a hash of the source where another
grammar of the same source was compiled before: the engine remembers those used last (`tf.engine.set_limits`).
The automata live as long as the grammar.
Rejected: weak keys (an automaton holds its vocabulary, so they would never be dropped); subclasses by kind of
constraint (they would differ in nothing but `parse`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

from tokenform import _core
from tokenform.errors import InvalidGrammar, InvalidSchema, LimitExceeded, OptionError
from tokenform.frontends import forms
from tokenform.frontends.captures import found_in
from tokenform.frontends.forms import Form
from tokenform.frontends.joined import Joined, Part, Single
from tokenform.frontends.json_text import read_json

Parts = tuple[Any, ...]
"""("capture", name, grammar), ("choice", grammars) or ("sequence", grammars)."""


def _same_text(text: str) -> Any:
    return text


class Wording(NamedTuple):
    """What a model is told of a constraint before a text.

    full: all; short: what is told where that is long; lead: what the model's turn begins with.
    """

    full: str
    short: str
    lead: str


class Grammar:
    """A set of accepted texts, and how to read one back.

    Grammars combine with ``|`` (either), ``+`` (one after the other), and, where they are regular languages,
    with ``&`` (both) and ``~`` (anything else).  A str stands for itself on either side of ``|`` and ``+``.
    The value of a combined grammar is its text.

    Attributes:
        parts: where it has captures, how it is put together; else None.
        told: what a model is told of it, in place of what its form says; else None.
    """

    __slots__ = (
        "__weakref__",
        "_automata",
        "_checked",
        "_core",
        "_form",
        "_joined",
        "_manner",
        "_narrowed",
        "_notes",
        "_read",
        "_schema",
        "_source",
        "_tools",
        "_written",
        "parts",
        "told",
    )

    def __init__(
        self,
        core: _core.Grammar | Joined,
        *,
        form: Form | None = None,
        read: Callable[[str], Any] | None = None,
        source: str = "",
        schema: Any = None,
        tools: Sequence[dict[str, Any]] | Callable[[], tuple[dict[str, Any], ...]] = (),
        notes: Sequence[str] | Callable[[], Sequence[str]] | None = None,
        narrowed: Callable[[], Grammar | None] | None = None,
        manner: Callable[[Mapping[str, str]], Grammar | None] | None = None,
    ) -> None:
        self._joined = core if isinstance(core, Joined) else None
        self._core = None if isinstance(core, Joined) else core
        self._form = form  # None: that of the join or the core, read when it is asked for
        self._schema = schema
        self._tools = tools  # where they are made when they are asked for, a function
        self._notes = notes  # in place of the core's report, which knows no names of tools
        self._source = source
        self._narrowed = narrowed
        self._manner = manner
        self._written: Grammar | None = None  # read when it is asked for
        self._checked = 0  # steps that checking it took, with those before it in the longest chain of & and ~
        self._read = read or _same_text
        self.parts: Parts | None = None
        self.told: Wording | None = None
        self._automata: dict[tuple[_core.Vocabulary, _core.Limits | None], _core.TokenAutomaton] = {}

    def compile(
        self, vocabulary: _core.Vocabulary, *, limits: _core.Limits | None = None
    ) -> _core.TokenAutomaton:
        """The automaton of this grammar over the vocabulary's tokens; lazy, so this is cheap.

        Args:
            vocabulary: the tokens.
            limits: what a call may need and the automaton may keep; None: as it is for the process.
        Raises:
            VocabularyError: the vocabulary lacks bytes that every accepted text needs.
            LimitExceeded: making the constraint needs more work than the limits allow.
            OptionError: something else than a vocabulary is given.
        """
        if not isinstance(vocabulary, _core.Vocabulary):
            raise OptionError(
                f"a grammar is compiled for a Vocabulary, not for a {type(vocabulary).__name__}; "
                "Vocabulary.from_tokenizer makes one of a tokenizer."
            )
        key = vocabulary, limits
        automaton = self._automata.get(key)
        if automaton is None:
            automaton = self._automata.setdefault(key, self.core.compile(vocabulary, limits, True))
        return automaton

    @property
    def tools(self) -> tuple[dict[str, Any], ...]:
        """The definitions of the tools, for prompts; of `tools` with the format in which they are called."""
        if not isinstance(self._tools, tuple):
            self._tools = self._tools() if callable(self._tools) else tuple(self._tools)
        return self._tools

    @property
    def for_writing(self) -> Grammar:
        """What a model writes of this grammar: for a JSON Schema whose `additional` is "auto", the documents
        whose objects have no properties but those that they declare; else the grammar itself.

        >>> import tokenform as tf
        >>> grammar = tf.json_schema({"properties": {"a": {"type": "integer"}}})
        >>> grammar.for_writing.source
        '{"properties": {"a": {"type": "integer"}}, "additionalProperties": false}'
        """
        if self._written is None:
            self._written = (self._narrowed and self._narrowed()) or self
        return self._written

    def in_manner(self, options: Mapping[str, str]) -> Grammar | None:
        """Its texts whose documents are written by these options, where they leave a choice; None: nowhere.

        >>> import tokenform as tf
        >>> narrower = tf.json_schema({"type": "array"}).in_manner({"whitespace": "compact"})
        >>> narrower.form["options"]["whitespace"]
        'compact'
        """
        if self._manner is not None:
            return self._manner(options)
        form = forms.narrowed(self.form, options)
        return None if form is None else Grammar(forms.compiled(form, "a manner of writing"), form=form)

    @property
    def core(self) -> _core.Grammar:
        """The core's grammar.

        Raises:
            LimitExceeded: it was put together by | and +, and reading it needs too much work.
        """
        if self._core is None:
            self._core = forms.compiled(self.form, self.source)
        return self._core

    @property
    def form(self) -> Form:
        """The same as plain data, from which other grammars are made."""
        if self._form is None:
            self._form = (
                self._joined.form
                if self._joined is not None
                else read_json(self.core.form(), name="the form", kind=InvalidGrammar)
            )
        return self._form

    @property
    def source(self) -> str:
        """What the grammar was made of (schema text, pattern, ...), for people."""
        return self._source if self._joined is None else self._joined.source

    @property
    def as_part(self) -> Part:
        """What a join of it with others holds."""
        return self._joined or Single(self.form, self.source)

    @property
    def schema(self) -> Any:
        """The JSON Schema that it was made of as a value, else None: prompts show it to the model, and
        drafters take names from it.  One that came as text is read when it is asked for.

        Raises:
            LimitExceeded: the text nests deeper than Python reads.
        """
        if isinstance(self._schema, str):
            self._schema = read_json(self._schema, name="the schema", kind=InvalidSchema)
        return self._schema

    @property
    def report(self) -> list[Any]:
        """What was ignored or loosened, and what of its schemas nothing satisfies, one entry each.

        Empty: the grammar is exact.  The latter is looked for when the report is asked for first.
        """
        if callable(self._notes):
            self._notes = self._notes()
        return list(self.core.report if self._notes is None else self._notes)

    def to_gbnf(self) -> str:
        """The same texts in llama.cpp's GBNF, for llama-server, LM Studio and others that read it.

        Raises:
            LimitExceeded, InvalidGrammar: GBNF can't say it; the message has what, and what to do.

        >>> import tokenform as tf
        >>> print(tf.regex("a+b").to_gbnf())
        root ::= p1
        p1 ::= [a] p1-1
        p1-1 ::= [a] p1-1 | [b] p1-2
        p1-2 ::= ""
        <BLANKLINE>
        """
        from tokenform.frontends.to_gbnf import to_gbnf  # it compiles grammars

        return to_gbnf(self.form, self.source)

    @property
    def reads(self) -> bool:
        """Whether a text's value is more than the text."""
        return self._read is not _same_text

    @property
    def shapes(self) -> Any:
        """What a type makes of its documents while they are written (`value_shapes.Shapes`), else None."""
        return getattr(self._read, "shapes", None)

    @property
    def tool_reader(self) -> dict[str, Any] | None:
        """How tool calls are read (the arguments of `ToolCallStream`); None where its texts are none."""
        found = getattr(self._read, "keywords", None)
        return dict(found) if isinstance(found, dict) and "tools" in found else None

    def parse(self, text: str) -> Any:
        """The value that an accepted text stands for: parsed JSON, an instance of the type, or the text."""
        return self._read(text)

    def captures(self, text: str) -> dict[str, Any]:
        """The parts of an accepted text that `capture` names: a `Capture` each, or a list of them where a
        name occurs several times.

        Raises:
            OptionError: the text is none of the grammar's.
            LimitExceeded: finding them needs too many steps.
        """
        return found_in(self, text)

    def with_parts(self, parts: Parts | None) -> Grammar:
        """The same grammar, put together so."""
        made = Grammar(
            self._joined or self.core,
            form=self._form,
            read=self._read,
            source=self._source,
            schema=self._schema,
            tools=self._tools,
        )
        made._checked, made.parts, made.told = self._checked, parts, self.told
        return made

    def __or__(self, other: Grammar | str) -> Grammar:
        return _joined("|", self, other)

    def __ror__(self, other: Grammar | str) -> Grammar:
        return _joined("|", other, self)

    def __add__(self, other: Grammar | str) -> Grammar:
        return _joined("+", self, other)

    def __radd__(self, other: Grammar | str) -> Grammar:
        return _joined("+", other, self)

    def __and__(self, other: Grammar) -> Any:
        """Texts of both: a `Grammar` of two regular languages; of a regular one and another grammar a
        `Condition`, for samplers that can do without whole masks (`tf.CARS`, `tf.SMC`, ...)."""
        if not isinstance(other, Grammar):
            return NotImplemented
        regular = ["language" in part.form for part in (self, other)]
        if regular[0] != regular[1]:
            grammar, language = (other, self) if regular[0] else (self, other)
            without_captures(language, "an operand of &")
            return Condition((), grammar, (language,))
        both = [{"language": _language(part, "&")} for part in (self, other)]
        return _checked(
            {"language": forms.joined("and", both)}, f"({self.source}) & ({other.source})", self, other
        )

    def __invert__(self) -> Grammar:
        language = _language(self, "~")
        return _checked({"language": language.get("not", {"not": language})}, f"~({self.source})", self)

    def to_bytes(self) -> bytes:
        """The grammar as bytes, which other processes and hosts without Python load.

        They hold what it was made of, read already: a text in Lark's language is rules and patterns.  How to
        read texts into values of a type stays behind.

        >>> import tokenform as tf
        >>> tf.Grammar.from_bytes(tf.regex("a|b").to_bytes())
        Grammar('/a|b/')
        """
        return self.core.to_bytes()

    @staticmethod
    def from_bytes(data: bytes) -> Grammar:
        """The grammar whose bytes these are; it combines with others, and a schema's texts are read as JSON.

        Raises:
            InvalidGrammar: they are not the bytes of a grammar, or of a later version of the library.
        """
        core = _core.Grammar.from_bytes(data)
        if core.kind == "context_free":  # its form is long, and read when it is asked for
            return Grammar(core, source=forms.title({"grammar": {}}))
        form = Grammar(core).form
        read = read_document if "schema" in form else None
        source = form.get("schema") or form.get("gbnf") or forms.title(form)
        return Grammar(core, form=form, read=read, source=source, schema=form.get("schema"))

    def __reduce__(self) -> tuple[Any, ...]:
        made = {"_form": self.form, "_read": self._read, "_source": self.source, "_schema": self.schema}
        beside = {"_tools": self.tools, "parts": self.parts, "told": self.told}
        return Grammar, (self.core,), (None, {**made, **beside})  # the attributes, as slots are set again

    def __copy__(self) -> Grammar:
        return self

    def __deepcopy__(self, memo: Any) -> Grammar:
        return self  # it never changes

    def __repr__(self) -> str:
        shown = self.source if len(self.source) <= 60 else f"{self.source[:57]}..."
        return f"Grammar({shown!r})"


Seen = Literal["text", "bytes", "tokens"]


@dataclass(frozen=True)
class Test:
    """One pair of functions; the fields are the arguments of `predicate`."""

    __test__ = False  # not a test case, whatever its name says to pytest

    prefix: Callable[[Any], Any] | None
    complete: Callable[[Any], Any] | None
    on: Seen = "text"
    batch: bool = False
    cache: int = 1 << 16
    name: str | None = None


@dataclass(frozen=True)
class Condition:
    """Texts that pass every test and are accepted by the grammar, where there is one, and by the languages.

    Attributes:
        tests: of Python.
        grammar: gives exact masks, so that tests are asked only about tokens that it lets through; or None.
        languages: regular ones beside a grammar that is not regular.  Their masks meet, which may end in a
            place from which nothing is accepted by both.
    """

    tests: tuple[Test, ...]
    grammar: Grammar | None = None
    languages: tuple[Grammar, ...] = ()

    @property
    def schema(self) -> Any:
        """The grammar's schema, for prompts; or None."""
        return None if self.grammar is None else self.grammar.schema

    @property
    def tools(self) -> tuple[dict[str, Any], ...]:
        """The definitions of the grammar's tools, for prompts."""
        return () if self.grammar is None else self.grammar.tools

    def parse(self, text: str) -> Any:
        """The value of an accepted text: what the grammar reads, else the text."""
        return text if self.grammar is None else self.grammar.parse(text)

    def __and__(self, other: Any) -> Condition:
        if isinstance(other, Grammar):
            joined = other if self.grammar is None else self.grammar & other
            if isinstance(joined, Condition):
                return Condition(self.tests, joined.grammar, (*self.languages, *joined.languages))
            return Condition(self.tests, joined, self.languages)
        if not isinstance(other, Condition):
            return NotImplemented
        both = self if other.grammar is None else self & other.grammar
        return Condition((*both.tests, *other.tests), both.grammar, (*both.languages, *other.languages))

    __rand__ = __and__


def read_document(text: str) -> Any:
    """The value of a schema's text."""
    return read_json(text, name="the document", kind=InvalidSchema)


def as_grammar(value: Grammar | str) -> Grammar:
    """The grammar itself, or that of a text alone."""
    if isinstance(value, Grammar):
        return value
    if isinstance(value, str):
        return _made({"language": forms.literal(value)}, repr(value))
    raise InvalidGrammar(f"a part of a grammar is a Grammar or a str, not {type(value).__name__}.")


def _made(form: Form, source: str) -> Grammar:
    return Grammar(forms.compiled(form, source), form=form, source=source)


def _checked(form: Form, source: str, *parts: Grammar) -> Grammar:
    """The grammar of a form that may have no text: what reading it takes counts with what reading its parts
    took, so that a chain of such steps is bounded as one call is."""
    made = _made(form, source)
    made._checked = made.core.work + max(part._checked for part in parts)
    most = _core.Limits().work
    if made._checked > most:
        raise LimitExceeded(
            f"checking a chain of & and ~ needs more than {most} steps of work (Limits.work); simplify it or "
            "raise the limit."
        )
    return made


def _joined(symbol: str, first: Grammar | str, second: Grammar | str) -> Grammar:
    if not isinstance(first, Grammar | str) or not isinstance(second, Grammar | str):
        return NotImplemented
    one, two = as_grammar(first), as_grammar(second)
    made = Grammar(Joined(symbol, one.as_part, two.as_part))
    tools = [part.tools for part in (one, two) if part.tools]
    made._tools = (
        tools[0] if len(tools) == 1 else tuple({id(tool): tool for some in tools for tool in some}.values())
    )
    made._checked = max(one._checked, two._checked)
    if one.parts is not None or two.parts is not None:
        kind = "choice" if symbol == "|" else "sequence"
        parts = (part.parts[1] if part.parts and part.parts[0] == kind else (part,) for part in (one, two))
        made.parts = kind, tuple(chain.from_iterable(parts))
    return made


def without_captures(grammar: Grammar, place: str) -> Form:
    """The form of a grammar that becomes a part of something whose texts are not cut.

    Raises:
        InvalidGrammar: it has captures, which would be lost there.
    """
    if grammar.parts is not None and grammar.parts[0] != "rules":
        raise InvalidGrammar(f"captures are found in grammars that + and | put together, not in {place}.")
    return grammar.form


def _language(grammar: Grammar, symbol: str) -> forms.Language:
    without_captures(grammar, f"an operand of {symbol}")
    if "language" not in grammar.form:
        raise InvalidGrammar(
            f"{symbol!r} takes regular languages (regex, choice, contains, substring, until), "
            f"and {grammar!r} is none; say the same with | and +, or inside the schema or grammar."
        )
    language: forms.Language = grammar.form["language"]
    return language
