"""Lark as the judge of the grammars: what it accepts, and how its lexer cut the text.

The examples files hold texts under headings `### accept: remark` and `### refuse: remark`; a text runs
from the line behind its heading to the line break before the next heading (or the last line break of the
file).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import lark.lexer
import pytest
from lark import Lark
from lark.exceptions import LarkError
from lark.indenter import Indenter

from tokenform.frontends.grammar_structure import GrammarStructure, IndenterEntry
from tokenform.frontends.lark_reader import read_lark, read_options

GRAMMARS = Path(__file__).resolve().parents[2] / "grammars"
NAMES = sorted(path.stem for path in GRAMMARS.glob("*.lark"))
_HEADING = re.compile(r"^### (accept|refuse)(?:: (.*))?\n", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    grammar: str
    accepted: bool
    remark: str
    text: str


def examples(name: str) -> list[Example]:
    source = (GRAMMARS / f"{name}.examples.txt").read_text(encoding="utf-8")
    headings = list(_HEADING.finditer(source))
    ends = [heading.start() for heading in headings[1:]] + [len(source)]
    return [
        Example(
            name,
            heading.group(1) == "accept",
            heading.group(2) or "",
            source[heading.end() : end].removesuffix("\n"),
        )
        for heading, end in zip(headings, ends, strict=True)
    ]


def text_of(name: str) -> str:
    return (GRAMMARS / f"{name}.lark").read_text(encoding="utf-8")


def make_indenter(entry: IndenterEntry) -> Indenter:
    members: dict[str, Any] = {
        "NL_type": entry["newline"],
        "INDENT_type": entry["indent"],
        "DEDENT_type": entry["dedent"],
        "OPEN_PAREN_types": entry["open"],
        "CLOSE_PAREN_types": entry["close"],
        "tab_len": entry["tab"],
    }
    return type("GrammarIndenter", (Indenter,), members)()


@cache
def judge(name: str, **options: Any) -> Lark:
    """Lark with the parser and the lexer that the header of the grammar names."""
    text = text_of(name)
    header = read_options(text)
    layout = read_lark(text)["indenter"]
    with pytest.MonkeyPatch.context() as patch:
        # Lark compares all pairs of terminals where interegular is installed; that takes minutes, and says
        # nothing here.
        patch.setattr(lark.lexer, "has_interegular", False)
        return Lark(
            text,
            parser=header["parser"],
            lexer=header["lexer"],
            start=header["start"],
            postlex=make_indenter(layout) if layout else None,
            **({"ambiguity": "forest"} if header["parser"] == "earley" else {}),
            **options,
        )


def accepts(parser: Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except LarkError:
        return False
    return True


def structure_to_lark(structure: GrammarStructure) -> Lark:
    """A parser for every segmentation, built from the neutral form alone, with symbols renamed."""
    rules = {
        name: f"r{i}" for i, name in enumerate(dict.fromkeys(rule["origin"] for rule in structure["rules"]))
    }
    terminals = {entry["name"]: f"T{i}" for i, entry in enumerate(structure["terminals"])}
    names = {**rules, **terminals}
    lines = []
    for origin, short in rules.items():
        alternatives = [rule["expansion"] for rule in structure["rules"] if rule["origin"] == origin]
        lines.append(
            f"{short}: " + " | ".join(" ".join(names[symbol] for symbol in body) for body in alternatives)
        )
    for entry in structure["terminals"]:
        short, literal = terminals[entry["name"]], entry["literal"]
        if literal is not None:
            suffix = "i" if "i" in entry["flags"] else ""
            lines.append(f"{short}: {json.dumps(literal, ensure_ascii=False)}{suffix}")
        else:
            source = entry["pattern"].replace("/", r"\/").replace("\n", r"\n")
            lines.append(f"{short}: /{source}/{entry['flags']}")
    return Lark(
        "\n".join(lines) + "\n",
        parser="earley",
        lexer="dynamic_complete",
        start=rules[structure["start"]],
        ambiguity="forest",
    )
