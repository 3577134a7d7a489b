"""Lark's grammar language, read into a `GrammarStructure`.

Purpose: the text of a grammar becomes flat rules over named terminals.  Lark's own loader does the
reading: templates, EBNF operators, `~ n..m`, ranges, aliases, `?`/`!`/`_` modifiers, `%import`,
`%override`, `%extend`, `%ignore` and `%declare` mean exactly what they mean there.
Invariant: two texts that Lark reads into the same rules give the same structure; every mistake is an
`InvalidGrammar` with 1-based line and column, the line itself and what was expected.
Source: the grammar reference of lark 1.x; terminal order is `lark.lexer.BasicLexer.__init__`: priority,
width, length of the pattern, name.
Additions, written so that Lark's own reader ignores them:
  `// tokenform: lexer=contextual start=file_input` sets options (explicit arguments win), and
  `// tokenform: indenter newline=_NEWLINE indent=_INDENT dedent=_DEDENT open=LPAR close=RPAR tab=8`
  describes layout.
`%json {...}` inside an expansion stands for the JSON texts that the schema accepts.
Rejected: an own parser of the language (it would drift from Lark's); Lark's `Lark` object (it builds parse
tables, which refuses grammars that are not LALR).
Complexity: Lark's loading time (LALR over the grammar text), plus linear checks.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, cast

from lark.exceptions import GrammarError, UnexpectedInput
from lark.grammar import NonTerminal, Rule
from lark.lexer import PatternStr, TerminalDef
from lark.load_grammar import Grammar, GrammarBuilder

from tokenform import _core
from tokenform.errors import InvalidGrammar, LimitExceeded, OptionError, TokenformError
from tokenform.frontends.garbage import collected_later
from tokenform.frontends.grammar_structure import (
    GrammarStructure,
    IndenterEntry,
    RuleEntry,
    TerminalEntry,
    escape_text,
    pattern_problem,
)
from tokenform.frontends.json_text import raw_json
from tokenform.frontends.lark_errors import (
    SKIPPED,
    error_at,
    foreign_error,
    place_of,
    semantic_error,
    syntax_error,
)
from tokenform.frontends.lark_groups import name_groups
from tokenform.frontends.lark_limits import SKIP, CheckedDefinitions, Reading, check_templates
from tokenform.frontends.unicode import check_text

Lexer = Literal["contextual", "dynamic"]

_DIRECTIVE = re.compile(r"^[ \t]*(?://|#)[ \t]*tokenform:[ \t]*(.*)$", re.MULTILINE)
# Where the text itself is said to stand: nothing is imported from beside it, nor from beside the program.
_NOWHERE = os.path.join(os.devnull, "grammar")
_LONG_NUMBER = re.compile(rf"{SKIPPED}|%json\b[^\n]*|(?P<number>(?<!\w)\d{{19,}})")
_LONG_DIGITS = re.compile(r"\d{19}")
_JSON_KEYWORD = re.compile(rf"{SKIPPED}|(?P<json>%json\b[ \t]*)")


@collected_later()
def read_lark(
    text: str,
    *,
    start: str | None = None,
    lexer: Lexer | None = None,
    import_paths: list[str] | None = None,
) -> GrammarStructure:
    """Reads a grammar in Lark's language.

    Args:
        text: the grammar.
        start: name of the start rule; without it that of the `// tokenform:` line, or "start".
        lexer: "contextual" or "dynamic"; without it that of the `// tokenform:` line, or "contextual".
        import_paths: folders in which `%import` looks, before Lark's own grammars.  Without them no file of
            the caller's is read, whatever the text says.

    Raises:
        InvalidGrammar: with `line`, `column` and the line itself where the text has them.
        LimitExceeded: parentheses are nested deeper than Python's recursion limit lets Lark read, a template
            or a terminal grows without end when it is written out, or a number has too many digits.
        OptionError: `lexer` is neither of the two.
    """
    try:
        return _structure(text, start, lexer, import_paths or [])
    except TokenformError as error:
        # the frames that it has passed hold what lark has made, a million objects, while it is on its way
        error.__context__ = None
        raise error.with_traceback(None) from None


def _structure(
    text: str, start: str | None, lexer: Lexer | None, import_paths: list[str]
) -> GrammarStructure:
    check_text(text, InvalidGrammar)
    reading = Reading()
    reading.begin(text)
    options, indenter = _read_directives(text)
    start_rule = start or options.get("start", "start")
    # Lark's Earley has no contextual lexer, so a header for it says "basic"; its grammar means the same in
    # both.
    lexer_name = lexer or options.get("lexer", "contextual").replace("basic", "contextual")
    if lexer_name not in ("contextual", "dynamic"):
        raise OptionError(f"lexer must be 'contextual' or 'dynamic', not {lexer_name!r}")
    _check_numbers(text, reading)
    plain, schemas = _extract_schemas(text, reading)
    reading.text(plain)
    try:
        grammar = _load(plain, text, import_paths)
    except RecursionError:
        raise _too_deep() from None
    except TokenformError:
        raise
    except Exception as error:  # Lark reports some mistakes by whatever they lead to
        raise foreign_error(error, plain, text) from error
    names = {rule[0] for rule in grammar.rule_defs}
    if start_rule not in names:
        known = ", ".join(sorted(names)) or "none"
        raise InvalidGrammar(f"The start rule '{start_rule}' is not defined; rules of the grammar: {known}.")
    try:
        check_templates(grammar, text, reading)
        reading.written(name_groups(grammar))
        terminals, rules, ignore = _compile(grammar, plain, text, start_rule, indenter)
    except RecursionError:
        raise _too_deep() from None
    except TokenformError:
        raise
    except Exception as error:
        raise foreign_error(error, plain, text) from error
    structure = GrammarStructure(
        terminals=terminals,
        rules=rules,
        ignore=list(dict.fromkeys(ignore)),
        declare=[name for name, (tree, _) in grammar.term_defs if tree is None],
        start=start_rule,
        lexer=cast(Lexer, lexer_name),
        indenter=indenter,
        schemas=schemas,
    )
    _check_productive(structure, text)
    return structure


def read_options(text: str) -> dict[str, str]:
    """The settings of the `// tokenform:` line: parser, lexer and start, as far as they are there."""
    return _read_directives(text)[0]


def _check_numbers(text: str, reading: Reading) -> None:
    """Numbers of a grammar are priorities and counts: beyond this length Python refuses to read them."""
    for found in _LONG_NUMBER.finditer(text) if _LONG_DIGITS.search(text) else ():
        reading.spend(SKIP)
        if found.lastgroup == "number":
            message = f"a number of {len(found.group())} digits; 18 are the most"
            raise error_at(message, text, *place_of(text, found.start()), LimitExceeded)


def _broken_escape(literal: str, text: str) -> TokenformError:
    message = f"the string {literal[:40]!r} has an escape that is none; write \\xHH, \\uHHHH or a character"
    at = text.find(f'"{literal}"')
    if at < 0:
        return InvalidGrammar(f"{message}.")
    return error_at(message, text, *place_of(text, at))


def _too_deep() -> LimitExceeded:
    return LimitExceeded("The grammar nests parentheses too deeply to be read; name inner parts as rules.")


def _load(plain: str, text: str, import_paths: list[str]) -> Grammar:
    try:
        builder = GrammarBuilder(False, list(import_paths))
        builder._definitions = CheckedDefinitions(text)
        builder.load_grammar(plain, _NOWHERE)
        grammar = builder.build()
    except UnexpectedInput:
        raise syntax_error(plain, text) from None
    except (GrammarError, re.error) as error:
        if re.match(r"Unexpected input|.*, at line \d+ column \d+", str(error)):
            raise syntax_error(plain, text) from None
        if len(error.args) == 2 and isinstance(error.args[1], SyntaxError):
            raise _broken_escape(str(error.args[0]), text) from None
        raise semantic_error(str(error), text) from None
    except FileNotFoundError as error:
        name = str(error.filename).removesuffix(".lark").replace("/", ".")
        raise semantic_error(f"The grammar '{name}' that is imported was not found", text, name) from None
    return grammar


def _compile(
    grammar: Grammar, plain: str, text: str, start: str, indenter: IndenterEntry | None
) -> tuple[list[TerminalEntry], list[RuleEntry], list[str]]:
    keep = {indenter["newline"], *indenter["open"], *indenter["close"]} if indenter else set()
    try:
        definitions, rules, ignore = _used(grammar, start, keep)
        for definition in definitions:
            _check_terminal(definition, text)
        # The order of `lark.lexer.BasicLexer`, with which it settles matches of one priority.
        definitions.sort(key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name))
    except UnexpectedInput:
        raise syntax_error(plain, text) from None
    except (GrammarError, ValueError, re.error) as error:
        if len(error.args) == 2 and isinstance(error.args[1], SyntaxError):
            raise _broken_escape(str(error.args[0]), text) from None
        raise semantic_error(str(error), text) from None
    return [_terminal(t) for t in definitions], [_rule(r) for r in rules], list(ignore)


def _used(grammar: Grammar, start: str, keep: set[str]) -> tuple[list[TerminalDef], list[Rule], list[str]]:
    """Lark's terminals and rules without those that nothing leads to.

    Lark drops rules that no other names, again and again: of a chain one at a time, each after a look at all
    rules.  Told that every rule is a start, it keeps them, and they are dropped here.
    """
    everything = [str(rule[0]) for rule in grammar.rule_defs]
    terminals, rules, ignore = grammar.compile([start, *everything], "*")
    users: Counter[NonTerminal] = Counter()
    by_origin: dict[NonTerminal, list[Rule]] = {}
    for rule in rules:
        by_origin.setdefault(rule.origin, []).append(rule)
        users.update(_named(rule))
    users[NonTerminal(start)] += 1
    unused = [origin for origin in by_origin if not users[origin]]
    while unused:
        for rule in by_origin.pop(unused.pop()):
            for symbol in _named(rule):
                users[symbol] -= 1
                if not users[symbol] and symbol in by_origin:
                    unused.append(symbol)
    rules = [rule for rule in rules if rule.origin in by_origin]
    wanted = {symbol.name for rule in rules for symbol in rule.expansion if symbol.is_term}
    wanted.update(ignore, keep)
    return [terminal for terminal in terminals if terminal.name in wanted], rules, ignore


def _named(rule: Rule) -> Iterator[NonTerminal]:
    """The other rules that a rule names, as often as it does."""
    symbols = (symbol for symbol in rule.expansion if isinstance(symbol, NonTerminal))
    return (symbol for symbol in symbols if symbol != rule.origin)


def _check_terminal(definition: TerminalDef, text: str) -> None:
    pattern = definition.pattern
    literal = isinstance(pattern, PatternStr)
    if literal and pattern.value:
        return
    source = escape_text(pattern.value) if literal else pattern.value
    problem = pattern_problem(source, "".join(pattern.flags))
    if problem:
        visible = "" if definition.name.startswith("__") else f" {definition.name}"
        raise semantic_error(
            f"The terminal{visible} {problem}", text, visible.strip() or pattern.raw or source
        )


def _terminal(definition: TerminalDef) -> TerminalEntry:
    pattern = definition.pattern
    literal = pattern.value if isinstance(pattern, PatternStr) else None
    return TerminalEntry(
        name=definition.name,
        pattern=pattern.value if literal is None else escape_text(literal),
        literal=literal,
        kind="re" if literal is None else "str",
        flags="".join(sorted(pattern.flags)),
        priority=definition.priority,
    )


def _rule(rule: Rule) -> RuleEntry:
    return RuleEntry(
        origin=str(rule.origin.name),
        expansion=[str(symbol.name) for symbol in rule.expansion],
        priority=rule.options.priority or 0,
        order=rule.order,
    )


def _check_productive(structure: GrammarStructure, text: str) -> None:
    names = [terminal["name"] for terminal in structure["terminals"]] + structure["declare"]
    rules = [(rule["origin"], rule["expansion"]) for rule in structure["rules"]]
    name = _core.endless_rule(rules, names)
    if name is not None:
        visible = _visible_name(name)
        raise semantic_error(
            f"The rule '{visible}' derives nothing: each of its alternatives needs a rule that never ends; "
            "add an alternative without recursion",
            text,
            visible,
        )


def _visible_name(name: str) -> str:
    """`__value_star_0`, which Lark makes for an operator inside `value`, is reported as `value`."""
    made = re.fullmatch(r"__(\w+?)_(?:star|plus|group|repeat_a\d+_b\d+(?:_opt)?)_\d+", name)
    return made.group(1) if made else name


def _read_directives(text: str) -> tuple[dict[str, str], IndenterEntry | None]:
    options: dict[str, str] = {}
    indenter: IndenterEntry | None = None
    for match in _DIRECTIVE.finditer(text):
        words = match.group(1).split()
        layout = bool(words) and words[0] == "indenter"
        pairs = dict(word.partition("=")[::2] for word in (words[1:] if layout else words))
        if not layout:
            options.update(pairs)
            continue
        missing = {"newline", "indent", "dedent"} - pairs.keys()
        if missing or not re.fullmatch("[0-9]{1,3}", pairs.get("tab", "8")):
            wrong = f"lacks {', '.join(sorted(missing))}" if missing else "has a tab width that is no number"
            line = text.count("\n", 0, match.start()) + 1
            raise InvalidGrammar(
                f"The indenter on line {line} {wrong}: {match.group(0)}", line=line, column=1
            )
        indenter = IndenterEntry(
            newline=pairs["newline"],
            indent=pairs["indent"],
            dedent=pairs["dedent"],
            open=[name for name in pairs.get("open", "").split(",") if name],
            close=[name for name in pairs.get("close", "").split(",") if name],
            tab=int(pairs.get("tab", "8")),
        )
    return options, indenter


def with_place(error: TokenformError, text: str, number: int) -> TokenformError:
    """The error of the schema that is the text's `number`-th, with the place of its `%json`."""
    found = [match.start() for match in _JSON_KEYWORD.finditer(text) if match.lastgroup == "json"]
    at = found[number]
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    message = f"Line {line}, column {column}: in the schema of %json, {error}"
    return type(error)(message, pointer=error.pointer, keyword=error.keyword, line=line, column=column)


def _extract_schemas(text: str, reading: Reading) -> tuple[str, dict[str, Any]]:
    """Replaces each `%json {...}` by a declared terminal; later lines and columns stay where they were."""
    pieces: list[str] = []
    schemas: dict[str, Any] = {}
    position = 0
    if "%json" not in text:
        return text, schemas
    while match := _JSON_KEYWORD.search(text, position):
        reading.spend(SKIP)
        if match.lastgroup != "json":
            pieces.append(text[position : match.end()])
            position = match.end()
            continue
        try:
            end = raw_json(text, match.end(), kind=InvalidGrammar)
        except TokenformError as error:
            line, column = error.line or place_of(text, match.start())[0], error.column or 1
            message = f"%json needs a JSON Schema: {error}".rstrip(".")
            raise error_at(message, text, line, column, type(error)) from None
        name = f"JSON_SCHEMA_{len(schemas)}"
        schemas[name] = text[match.end() : end].strip()
        # A backslash before the line break continues the expansion, so that line numbers are kept.
        breaks = text.count("\n", match.start(), end)
        last = text[:end].rpartition("\n")[2] if breaks else text[match.start() : end]
        padding = " " * len(last) if breaks else " " * (len(last) - len(name))
        pieces += [text[position : match.start()], name, " \\\n" * breaks, padding]
        position = end
    declared = "".join(f"\n%declare {name}" for name in schemas)
    return "".join(pieces) + text[position:] + declared, schemas
