"""The library of grammars: `tf.grammars.sql()`.

Invariant: `names()` lists exactly the files that are there; each has a function of its name here.
Complexity: one file read and one grammar read for a call; nothing is loaded on import.
The files stand in `grammars/` at the root of a checkout, and in `tokenform/_grammars` in an installed
package.  The checkout is looked at first: an editable install leaves a copy beside the package that edits
don't reach (`.gitignore` names it, which keeps it out of the next wheel).
Rejected: a module `__getattr__` that makes the functions up; editors and type checkers would not see them.
"""

from __future__ import annotations

from collections.abc import Callable
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


def _in_library(name: str, texts: str) -> Callable[[], Grammar]:
    def made() -> Grammar:
        return load(name)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"{texts}; see grammars/{name}.lark."
    return made


arithmetic = _in_library("arithmetic", "Arithmetic expressions")
c = _in_library("c", "C source files")
chess_pgn = _in_library("chess_pgn", "Chess games in PGN")
csv = _in_library("csv", "Comma-separated values")
iso_dates = _in_library("iso_dates", "Dates, times, intervals and durations of ISO 8601")
javascript = _in_library("javascript", "JavaScript expressions")
json = _in_library("json", "JSON texts")
markdown_table = _in_library("markdown_table", "One table in Markdown")
pddl_plan = _in_library("pddl_plan", "Plans for PDDL problems")
python = _in_library("python", "Python 3.12 modules")
regex = _in_library("regex", "Regular expressions of ECMAScript")
sexpr = _in_library("sexpr", "S-expressions")
smiles = _in_library("smiles", "Molecules as SMILES")
sql = _in_library("sql", "SELECT queries")
sygus_bv = _in_library("sygus_bv", "SyGuS solutions over bit-vectors")
sygus_slia = _in_library("sygus_slia", "SyGuS solutions over strings and integers")
toml = _in_library("toml", "TOML documents")
verilog = _in_library("verilog", "Verilog modules")
xml = _in_library("xml", "XML documents without a document type")
yaml = _in_library("yaml", "A subset of YAML")
