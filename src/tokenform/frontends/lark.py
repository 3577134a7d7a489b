"""Grammars in Lark's language.

Invariant: which texts are accepted is what Lark's LALR parser with its contextual lexer accepts, or what its
Earley parser with the complete dynamic lexer does, but for the points below.
Complexity: Lark's loading time; a hash for a text that was read before, as long as the engine remembers it
(`tf.engine.set_limits(compiled=)`); the engine builds tables while they are used.
Differences from Lark, with the contextual lexer: any context-free grammar is taken, ambiguous ones included;
the longest match wins, whatever its priority (Lark takes the first terminal of its order that matches at
all); a terminal that has been read past one of its ends must reach another (Lark goes back to the last
end); what a lookahead at the end of a pattern asks of the text behind it is taken as if the text ended there.
An indented line is at most 8 columns deeper than the block around it, and at most 160 deep.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any, Literal

from lark import __version__ as LARK_VERSION

from tokenform import _core, disk_cache
from tokenform.errors import InvalidGrammar, LimitExceeded, OptionError, TokenformError
from tokenform.frontends import forms
from tokenform.frontends.forms import Form
from tokenform.frontends.garbage import collected_later
from tokenform.frontends.grammar import Grammar, without_captures
from tokenform.frontends.grammar_structure import GrammarStructure
from tokenform.frontends.lark_errors import semantic_error
from tokenform.frontends.lark_reader import Lexer, read_lark, with_place
from tokenform.frontends.llguidance import read_llguidance
from tokenform.frontends.llguidance_reader import is_llguidance
from tokenform.frontends.schemas import json_schema, known_options
from tokenform.frontends.unicode import check_text

Dialect = Literal["auto", "lark", "llguidance"]


def lark(
    text: str,
    *,
    start: str | None = None,
    lexer: Lexer | None = None,
    import_paths: list[str] | None = None,
    definitions: Mapping[str, Grammar] | None = None,
    json_options: Mapping[str, Any] | None = None,
    dialect: Dialect = "auto",
) -> Grammar:
    """The texts that a grammar in Lark's language derives.

    Args:
        text: the grammar.  `%json {...}` inside an expansion stands for the documents of a JSON Schema.
        start: name of the start rule; without it that of the text's `// tokenform:` line, or "start".
        lexer: "contextual" (longest match among the terminals that may come) or "dynamic" (every segmentation
            counts); without it that of the text's `// tokenform:` line, or "contextual".
        import_paths: folders in which `%import` looks, before Lark's own grammars.
        definitions: grammars by the names of terminals that the text uses and does not define.  The lexer
            does not cut them: every text of such a grammar counts, and what is ignored may stand around it.
        json_options: options of `json_schema` for each `%json`, by its names and with its defaults.
        dialect: "lark"; "llguidance", whose lexer and patterns are that library's (`definitions` are then
            named by `@name`); "auto": llguidance's where the text has something that Lark does not read.

    Raises:
        InvalidGrammar: `line` and `column` are the place of the mistake where the text has one.
        UnsupportedRegex: a terminal's pattern isn't regular.
        UnsatisfiableGrammar: no text is accepted.
        LimitExceeded: the grammar is too large.
        TokenformError: what `json_schema` raises for a schema inside the text, with `line` and `column`.
    """
    check_text(text, InvalidGrammar)
    if dialect not in ("auto", "lark", "llguidance"):
        raise OptionError(f"dialect must be 'auto', 'lark' or 'llguidance', not {dialect!r}")
    if dialect == "llguidance" or (dialect == "auto" and is_llguidance(text)):
        if lexer is not None or import_paths:
            raise OptionError("lexer and import_paths are for Lark's own dialect; leave them out.")
        return _of_llguidance(text, start or "start", dict(definitions or {}), json_options)
    if definitions or import_paths or json_options:  # things that no key names in full
        return _read(text, start, lexer, import_paths, dict(definitions or {}), json_options)
    cache_key = repr((start, lexer, LARK_VERSION))
    core = _core.Grammar.named(cache_key + text)
    if core is None:
        core = _read_once(text, start, lexer, cache_key)
        core.remember(cache_key + text)
    return Grammar(core, source=text)


def _of_llguidance(
    text: str, start: str, grammars: dict[str, Grammar], json_options: Mapping[str, Any] | None
) -> Grammar:
    for name, grammar in grammars.items():
        if not isinstance(grammar, Grammar):
            raise OptionError(f"definitions[{name!r}] must be a Grammar, not {type(grammar).__name__}.")
    try:
        form, notes, parts = read_llguidance(text, start, grammars, known_options(json_options))
    except RecursionError:
        raise LimitExceeded("The grammar's terminals refer to each other too deeply to be read.") from None
    try:
        core = forms.compiled(form, "the grammar")
    except TokenformError as error:
        raise _at_terminal(error, text) from None
    made = Grammar(core, form=form, source=text, notes=[*core.report, *notes] if notes else None)
    made.parts = parts
    return made


def _read_once(text: str, start: str | None, lexer: Lexer | None, cache_key: str) -> _core.Grammar:
    """From the disk, where it was read before."""
    cached = disk_cache.read("grammar", text.encode(), cache_key.encode())
    if cached is not None:
        with contextlib.suppress(TokenformError):  # a sum that happens to fit
            return _core.Grammar.from_bytes(cached)
    with collected_later():  # the rules, which are written and let go, included
        core = _read(text, start, lexer, None, {}, None).core
    disk_cache.write("grammar", core.to_bytes(), text.encode(), cache_key.encode())
    return core


def _read(
    text: str,
    start: str | None,
    lexer: Lexer | None,
    import_paths: list[str] | None,
    grammars: dict[str, Grammar],
    json_options: Mapping[str, Any] | None,
) -> Grammar:
    for name, grammar in grammars.items():
        if not re.fullmatch("_?[A-Z][A-Z0-9_]*", name):
            raise OptionError(f"definitions: {name!r} is no name of a terminal; write it in capitals.")
        if not isinstance(grammar, Grammar):
            raise OptionError(f"definitions[{name!r}] must be a Grammar, not {type(grammar).__name__}.")
    declared = "".join(f"\n%declare {name}" for name in grammars)
    structure = read_lark(text + declared, start=start, lexer=lexer, import_paths=import_paths)
    parts = {
        name: forms.lowered(without_captures(grammar, "definitions")) for name, grammar in grammars.items()
    }
    options = known_options(json_options)
    for name, schema in structure["schemas"].items():
        try:
            parts[name] = json_schema(schema, **options).form
        except TokenformError as error:
            raise with_place(error, text, int(name.rpartition("_")[2])) from None
    return from_structure(structure, text, parts)


def from_structure(structure: GrammarStructure, source: str, parts: Mapping[str, Form]) -> Grammar:
    """The grammar of a neutral structure, whose declared terminals stand for the parts; `source` is for
    people."""
    form: Form = {"grammar": {**structure, "parts": dict(parts)}}
    try:
        if parts:
            core = forms.compiled(form, "the grammar")
        else:
            core = _core.context_free(forms.written(structure))
    except TokenformError as error:
        raise _at_terminal(error, source) from None
    # without parts it has no JSON, whose manner would be looked for in all of the form
    return Grammar(core, form=form, source=source, manner=None if parts else _none)


def _none(options: Mapping[str, str]) -> None:
    """In no manner."""


def _at_terminal(error: TokenformError, text: str) -> TokenformError:
    """The engine's error with the place of the terminal that it names."""
    named = re.search(r"[Tt]he terminal (\w+)", str(error))
    if error.line is not None or named is None:
        return error
    name = None if named.group(1).startswith("__") else named.group(1)
    return semantic_error(str(error), text, name, type(error))
