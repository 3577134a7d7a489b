"""The grammars under grammars/: header, index, examples, agreement of Lark's lexer with longest match."""

from __future__ import annotations

import re

import lark
import pytest
from lark import Token
from lark.lexer import ContextualLexer, PatternStr

from tokenform.frontends.lark_reader import read_lark, read_options

from .judge import GRAMMARS, NAMES, Example, accepts, examples, judge, text_of

EXAMPLES = [example for name in NAMES for example in examples(name)]
EXPECTED = {
    "arithmetic", "c", "chess_pgn", "csv", "iso_dates", "javascript", "json", "markdown_table", "pddl_plan",
    "python",
    "regex", "sexpr", "smiles", "sql", "sygus_bv", "sygus_slia", "toml", "verilog", "xml", "yaml",
}  # fmt: skip


def _label(example: Example) -> str:
    return f"{example.grammar}-{'accept' if example.accepted else 'refuse'}-{example.remark}".replace(
        " ", "_"
    )


def test_all_grammars_are_there() -> None:
    assert set(NAMES) == EXPECTED


@pytest.mark.parametrize("example", EXAMPLES, ids=_label)
def test_example(example: Example) -> None:
    assert accepts(judge(example.grammar), example.text) is example.accepted


@pytest.mark.parametrize("name", NAMES)
def test_enough_examples(name: str) -> None:
    of_grammar = examples(name)
    assert sum(example.accepted for example in of_grammar) >= 5
    assert sum(not example.accepted for example in of_grammar) >= 5
    assert len({(example.accepted, example.remark) for example in of_grammar}) == len(of_grammar)


@pytest.mark.parametrize("name", NAMES)
def test_header_and_index(name: str) -> None:
    text = text_of(name)
    header = text[: re.search(r"^[^/\n]", text, re.MULTILINE).start()]  # type: ignore[union-attr]
    for part in ("// tokenform: parser=", "// Covers: ", "// Source: ", "// Limits: "):
        assert part in header, f"{name}.lark lacks the line {part!r}"
    options = read_options(text)
    assert options["parser"] in ("lalr", "earley") and options["lexer"] in ("contextual", "basic")
    assert f"[{name}.lark]({name}.lark)" in (GRAMMARS / "README.md").read_text(encoding="utf-8")
    assert all(len(line) <= 130 for line in header.splitlines()), "header lines are at most 130 wide"


@pytest.mark.parametrize("name", NAMES)
def test_reader_loads_it(name: str) -> None:
    structure = read_lark(text_of(name))
    assert structure["start"] == read_options(text_of(name))["start"]
    defined = {t["name"] for t in structure["terminals"]} | {r["origin"] for r in structure["rules"]}
    defined |= set(structure["declare"])
    assert all(symbol in defined for rule in structure["rules"] for symbol in rule["expansion"])
    assert set(structure["ignore"]) <= defined


@pytest.mark.parametrize("name", [name for name in NAMES if read_options(text_of(name))["parser"] == "lalr"])
def test_conflicts_are_those_of_the_header(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="lark")
    judge.__wrapped__(name, debug=True)
    conflicts = [
        record for record in caplog.records if record.getMessage().startswith("Shift/Reduce conflict")
    ]
    assert len(conflicts) == int(read_options(text_of(name)).get("conflicts", "0"))


def _longest_is_chosen(name: str, text: str) -> None:
    """At each token, no terminal that the parser can take matches more than the one that Lark took."""
    parser = judge(name)
    interactive = parser.parse_interactive(text)
    lexer = interactive.lexer_thread.lexer
    lexer = getattr(lexer, "lexer", lexer)  # below the indenter
    assert isinstance(lexer, ContextualLexer)
    for token in interactive.lexer_thread.lex(interactive.parser_state):
        assert isinstance(token, Token)
        state = interactive.parser_state.position
        if token.start_pos is not None and token.type not in ("_INDENT", "_DEDENT"):
            for terminal in lexer.lexers[state].terminals:
                pattern = re.compile(terminal.pattern.to_regexp())
                match = pattern.match(text, token.start_pos)
                assert match is None or match.end() <= token.start_pos + len(token), (token, terminal)
                if (
                    match is not None
                    and match.end() == token.start_pos + len(token)
                    and terminal.name != token.type
                ):
                    assert _precedes(parser, token.type, terminal.name), (token, terminal)
        interactive.feed_token(token)


def _precedes(parser: lark.Lark, chosen: str, other: str) -> bool:
    """Among matches of one length: a higher priority, or a string before a regex."""
    first, second = parser.get_terminal(chosen), parser.get_terminal(other)
    if first.priority != second.priority:
        return first.priority > second.priority
    return isinstance(first.pattern, PatternStr) and not isinstance(second.pattern, PatternStr)


LALR_ACCEPTED = [e for e in EXAMPLES if e.accepted and read_options(text_of(e.grammar))["parser"] == "lalr"]


@pytest.mark.parametrize("example", LALR_ACCEPTED, ids=_label)
def test_lark_takes_the_longest_match(example: Example) -> None:
    _longest_is_chosen(example.grammar, example.text)
