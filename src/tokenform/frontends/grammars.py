"""The library of grammars: `tf.grammars.sql()`.

Invariant: `names()` lists exactly the files that are there; each has a function of its name here.
Complexity: one file read and one grammar read for a call; nothing is loaded on import.
The files stand in `grammars/` at the root of a checkout, and in `tokenform/_grammars` in an installed
package.  The checkout is looked at first: an editable install leaves a copy beside the package that edits
don't reach (`.gitignore` names it, which keeps it out of the next wheel).
Rejected: a module `__getattr__` that makes the functions up; editors and type checkers would not see them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tokenform.errors import OptionError

if TYPE_CHECKING:
    from tokenform.frontends.grammar import Grammar

__all__ = [
    "arithmetic",
    "c",
    "chess_pgn",
    "csv",
    "folder",
    "iso_dates",
    "javascript",
    "json",
    "load",
    "markdown_table",
    "names",
    "pddl_plan",
    "python",
    "regex",
    "sexpr",
    "smiles",
    "sql",
    "sygus_bv",
    "sygus_slia",
    "text",
    "toml",
    "verilog",
    "xml",
    "yaml",
]


@cache
def folder() -> Path:
    """The folder that holds the grammar files.

    Raises:
        OptionError: neither the installed package nor a checkout around it holds them.
    """
    here = Path(__file__).resolve()
    checkout = here.parents[3]
    if (checkout / "rust" / "core").is_dir() and (checkout / "grammars" / "json.lark").is_file():
        return checkout / "grammars"
    if (here.parents[1] / "_grammars" / "json.lark").is_file():
        return here.parents[1] / "_grammars"
    raise OptionError(
        "The grammar files were not found; install tokenform from a wheel, or use a whole checkout."
    )


def names() -> list[str]:
    """Names of all grammars, sorted."""
    return sorted(path.stem for path in folder().glob("*.lark"))


def text(name: str) -> str:
    """The grammar itself, in Lark's language.

    Raises:
        OptionError: there is no grammar of that name.
    """
    if name not in names():
        raise OptionError(f"There is no grammar {name!r}; the library holds: {', '.join(names())}.")
    return (folder() / f"{name}.lark").read_text(encoding="utf-8")


def load(name: str) -> Grammar:
    """The grammar of that name; its header gives the start rule and the lexer.

    Raises:
        OptionError: there is no grammar of that name.
    """
    from tokenform.frontends.lark import lark  # here, so that names() and text() need no engine
    from tokenform.frontends.lark_reader import read_options

    source = text(name)
    return lark(source, start=read_options(source)["start"])


def arithmetic() -> Grammar:
    """Arithmetic expressions; see grammars/arithmetic.lark."""
    return load("arithmetic")


def c() -> Grammar:
    """C source files; see grammars/c.lark."""
    return load("c")


def chess_pgn() -> Grammar:
    """Chess games in PGN; see grammars/chess_pgn.lark."""
    return load("chess_pgn")


def csv() -> Grammar:
    """Comma-separated values; see grammars/csv.lark."""
    return load("csv")


def iso_dates() -> Grammar:
    """Dates, times, intervals and durations of ISO 8601; see grammars/iso_dates.lark."""
    return load("iso_dates")


def javascript() -> Grammar:
    """JavaScript expressions; see grammars/javascript.lark."""
    return load("javascript")


def json() -> Grammar:
    """JSON texts; see grammars/json.lark."""
    return load("json")


def markdown_table() -> Grammar:
    """One table in Markdown; see grammars/markdown_table.lark."""
    return load("markdown_table")


def pddl_plan() -> Grammar:
    """Plans for PDDL problems; see grammars/pddl_plan.lark."""
    return load("pddl_plan")


def python() -> Grammar:
    """Python 3.12 modules; see grammars/python.lark."""
    return load("python")


def regex() -> Grammar:
    """Regular expressions of ECMAScript; see grammars/regex.lark."""
    return load("regex")


def sexpr() -> Grammar:
    """S-expressions; see grammars/sexpr.lark."""
    return load("sexpr")


def smiles() -> Grammar:
    """Molecules as SMILES; see grammars/smiles.lark."""
    return load("smiles")


def sql() -> Grammar:
    """SELECT queries; see grammars/sql.lark."""
    return load("sql")


def sygus_bv() -> Grammar:
    """SyGuS solutions over bit-vectors; see grammars/sygus_bv.lark."""
    return load("sygus_bv")


def sygus_slia() -> Grammar:
    """SyGuS solutions over strings and integers; see grammars/sygus_slia.lark."""
    return load("sygus_slia")


def toml() -> Grammar:
    """TOML documents; see grammars/toml.lark."""
    return load("toml")


def verilog() -> Grammar:
    """Verilog modules; see grammars/verilog.lark."""
    return load("verilog")


def xml() -> Grammar:
    """XML documents without a document type; see grammars/xml.lark."""
    return load("xml")


def yaml() -> Grammar:
    """A subset of YAML; see grammars/yaml.lark."""
    return load("yaml")
