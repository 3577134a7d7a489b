"""Texts that nobody wrote for these grammars, and judges that know the languages from elsewhere."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tarfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest
from lark import Lark

from tokenform.frontends.gbnf import read_gbnf
from tokenform.frontends.grammar_structure import GrammarStructure

from .judge import GRAMMARS, Example, accepts, examples, judge, structure_to_lark

ROOT = GRAMMARS.parent


# ---- Python's standard library -----------------------------------------------------------------------------


def _standard_library() -> list[Path]:
    root = Path(sysconfig.get_paths()["stdlib"])
    return sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)


def _python_text(path: Path) -> str | None:
    """The text with a line break at its end; None where it isn't UTF-8 or not Python (test data)."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return text + "\n"


def _accepted_share(paths: list[Path]) -> float:
    texts = [text for path in paths if (text := _python_text(path)) is not None]
    assert texts
    return sum(accepts(judge("python"), text) for text in texts) / len(texts)


def test_sample_of_the_standard_library() -> None:
    small = [path for path in _standard_library() if path.stat().st_size < 20_000]
    assert _accepted_share(random.Random(0).sample(small, 25)) == 1.0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_whole_standard_library() -> None:
    assert _accepted_share(_standard_library()) >= 0.99


# ---- Judges from elsewhere on the examples -----------------------------------------------------------------


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _is_xml(text: str) -> bool:
    declared = text if "xmlns:ns" in text else text.replace("<ns:a ", '<ns:a xmlns:ns="n" ', 1)
    try:
        ElementTree.fromstring(declared.encode())
    except ElementTree.ParseError:
        return False
    return True


def _is_toml(text: str) -> bool:
    tomllib = pytest.importorskip("tomllib")
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


def _is_select(text: str) -> bool:
    """SQLite reads the statement: it complains about names at most."""
    if not re.match(r"(?i)\s*(select|with)\b", text):
        return False
    try:
        sqlite3.connect(":memory:").execute("EXPLAIN " + text)
    except sqlite3.ProgrammingError:
        return False
    except sqlite3.OperationalError as error:
        return str(error).startswith(("no such table", "no such column"))
    return True


JUDGES: dict[str, Callable[[str], bool]] = {
    "json": _is_json,
    "xml": _is_xml,
    "toml": _is_toml,
    "sql": _is_select,
}
if sys.version_info >= (3, 12):
    JUDGES["python"] = _is_python


@pytest.mark.parametrize(
    "example",
    [e for name in JUDGES for e in examples(name)],
    ids=lambda e: f"{e.grammar}-{e.remark}".replace(" ", "_"),
)
def test_examples_agree_with_another_judge(example: Example) -> None:
    assert JUDGES[example.grammar](example.text) is example.accepted


@pytest.mark.parametrize("example", [e for e in examples("yaml") if e.accepted], ids=lambda e: e.remark)
def test_accepted_yaml_is_yaml(example: Example) -> None:
    yaml = pytest.importorskip("yaml")
    yaml.safe_load(example.text)


# ---- Configuration, C --------------------------------------------------------------------------------------


def test_toml_of_this_repository() -> None:
    skipped = {".venv", "target", ".git"}
    paths = [path for path in ROOT.rglob("*.toml") if not skipped & set(path.relative_to(ROOT).parts)]
    if not paths:
        pytest.skip("the checkout holds no TOML files")
    for path in paths:
        assert accepts(judge("toml"), path.read_text(encoding="utf-8")), path


def _preprocessed(header: str) -> str:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler, which the headers must be run through (cc -E)")
    command = [compiler, "-E", "-P", "-x", "c", "-"]
    result = subprocess.run(
        command, input=f"#include <{header}>\nint end;\n", capture_output=True, text=True, check=False
    )
    if result.returncode:
        pytest.skip(f"the header {header} is not on this machine")
    return result.stdout


@pytest.mark.parametrize("header", ["stddef.h", "stdarg.h", "stdbool.h", "assert.h"])
def test_small_headers(header: str) -> None:
    assert accepts(judge("c"), _preprocessed(header))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "header", ["stdio.h", "stdlib.h", "string.h", "ctype.h", "time.h", "setjmp.h", "zlib.h"]
)
def test_headers(header: str) -> None:
    assert accepts(judge("c"), _preprocessed(header))


# ---- SyGuS and SMILES tasks --------------------------------------------------------------------------------


def _tasks() -> dict[str, str]:
    shared = Path(os.environ.get("TOKENFORM_SHARED", ROOT.parent / "shared"))
    archive = shared / "data" / "gad-tasks.tar.xz"
    if not archive.exists():
        return {}
    with tarfile.open(archive) as tar:
        return {
            member.name.removeprefix("./"): stream.read().decode()
            for member in tar
            if member.isfile() and (stream := tar.extractfile(member)) is not None
        }


TASKS = _tasks()
GBNF = sorted(name for name in TASKS if name.endswith(".ebnf"))
needs_tasks = pytest.mark.skipif(
    not TASKS, reason="gad-tasks.tar.xz is not there; set TOKENFORM_SHARED to its folder"
)


def _derive(structure: GrammarStructure, draw: random.Random, depth: int) -> str:
    """A random text of a grammar whose terminals are literals; below `depth` only the shortest expansions."""
    bodies: dict[str, list[list[str]]] = {}
    for rule in structure["rules"]:
        bodies.setdefault(rule["origin"], []).append(rule["expansion"])
    literals = {entry["name"]: entry["literal"] for entry in structure["terminals"]}

    def expand(symbol: str, left: int) -> str:
        if symbol in literals:
            literal = literals[symbol]
            assert literal is not None
            return literal
        choices = bodies[symbol] if left > 0 else [min(bodies[symbol], key=len)]
        return "".join(expand(part, left - 1) for part in draw.choice(choices))

    return expand(structure["start"], depth)


@needs_tasks
@pytest.mark.parametrize("name", GBNF)
def test_every_task_grammar_loads(name: str) -> None:
    structure = read_gbnf(TASKS[name])
    assert structure["start"] == "root" and structure["terminals"]


@needs_tasks
@pytest.mark.parametrize("name", [name for name in GBNF if not name.startswith("smiles")])
def test_derived_texts_are_accepted(name: str) -> None:
    structure = read_gbnf(TASKS[name])
    parser = structure_to_lark(structure)
    library = judge("sygus_bv" if name.startswith("BV4") else "sygus_slia")
    draw = random.Random(name)
    for _ in range(3):
        text = _derive(structure, draw, 6)
        assert accepts(parser, text)
        assert not accepts(parser, text[:-1])
        assert not accepts(parser, text.replace("(define-fun ", "(define-fun  "))
        assert accepts(library, text)


@needs_tasks
@pytest.mark.parametrize("family", ["SLIA", "BV4"])
def test_solutions_of_the_tasks(family: str) -> None:
    texts = [text for name, text in TASKS.items() if name.startswith(family) and name.endswith(".txt")]
    solutions = {
        found for text in texts for found in re.findall(r"^\(define-fun (?:f|inv) .*$", text, re.MULTILINE)
    }
    assert len(solutions) > 10
    parser = judge("sygus_bv" if family == "BV4" else "sygus_slia")
    assert [text for text in solutions if not accepts(parser, text)] == []


@needs_tasks
@pytest.mark.parametrize("kind", ["acrylates", "chain_extenders", "isocyanates"])
def test_molecules_of_the_tasks(kind: str) -> None:
    molecules = re.findall(r"^Molecule: (\S+)$", TASKS[f"smiles/{kind}.txt"], re.MULTILINE)
    assert len(molecules) > 10
    assert [text for text in molecules if not accepts(judge("smiles"), text)] == []
    own = structure_to_lark(read_gbnf(TASKS[f"smiles/{kind}.ebnf"]))
    # The tasks hold each grammar in Lark's language too.  It refuses a branch behind a ring closure, `C1(C)`.
    theirs = Lark(
        TASKS[f"smiles/{kind}.lark"] + "\n", parser="earley", lexer="dynamic_complete", ambiguity="forest"
    )
    texts = [*molecules, *(text[:-1] for text in molecules), "C(", "[NH4+]", "C%12C"]
    assert [accepts(own, text) for text in texts] == [accepts(theirs, text) for text in texts]
    assert sum(accepts(own, text) for text in molecules) > len(molecules) / 2
