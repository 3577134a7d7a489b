"""What the checker reads, what it does not read, and that it stands alone."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tokenform as tf
from tokenform.certificates import CannotCheck, Unproven, check
from tokenform.certificates.check import language
from tokenform.certificates.schema import OPTIONS
from tokenform.cli import app

FOLDER = Path(check.__code__.co_filename).parent
BYTES = [bytes([byte]) for byte in range(256)]
PIECES = [b'{"', b'":', b'","', b"ab", b"12", b'"}', b"\xc3\xa9", b"\\n", b"\\u00", b"<pad>", b""]
VOCABULARY = tf.Vocabulary([*BYTES, *PIECES], eos=[266], special=[265])
OPEN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "s": {"type": "string", "minLength": 2, "maxLength": 9, "pattern": r"^a\d+"},
        "l": {"type": "array", "items": {"$ref": "#"}, "maxItems": 3},
        "e": {"enum": ["x\n", 3, None]},
        "u": {"anyOf": [{"type": ["boolean", "null"]}, {"type": "string", "pattern": "é.|b"}]},
    },
    "required": ["a", "l"],
    "additionalProperties": False,
}
TRUE: list[tuple[tf.Grammar, bytes]] = [
    (tf.regex("[a-z]+(ab|é)?[^x-z]{2,3}."), "abéß2q".encode()),
    (tf.regex(r"(?:\x41|\u00e9|[^\]\\-]){2,}"), "Aéo".encode()),
    (tf.choice(["red", "green", "ré"]), b"gre"),
    (tf.gbnf('root ::= "(" root* ")" | [0-9]{1,3} (" " | "\\n")* x\nx ::= | "é" x | x "q"'), b"(()(12 qq))"),
    (tf.gbnf('root ::= a{2,3} [^a\\]-]+ # no\na ::= ( "x"\n | b ) .\nb ::= "\\x79" b?'), b"x1yyb2]"),
    (
        tf.json_schema(OPEN, **OPTIONS),
        '{"a":12,"s":"a1bc","l":[{"a":-3,"l":[]}],"e":"x\\n","u":"zéa"}'.encode(),
    ),
    (
        tf.json_schema({"type": "array", "items": {"type": "string"}, "minItems": 2}, **OPTIONS),
        b'["a\\"","\\u0001"]',
    ),
]


@pytest.mark.parametrize(("grammar", "text"), TRUE, ids=[str(n) for n in range(len(TRUE))])
def test_what_the_engine_says_is_accepted(grammar: tf.Grammar, text: bytes) -> None:
    state, tokens = grammar.compile(VOCABULARY).start, []
    for byte in text:
        if not grammar.compile(VOCABULARY).allows(state, byte):
            break
        tokens.append(byte)
        state = grammar.compile(VOCABULARY).advance(state, byte)
    assert len(tokens) > len(text) // 2
    certificate = json.loads(json.dumps(tf.engine.certify(grammar, VOCABULARY, tokens)))
    assert check(certificate).startswith(f"{len(tokens)} tokens")
    certificate["states"][-1]["end"] = not certificate["states"][-1]["end"]
    with pytest.raises(Unproven, match="an end where the text may end"):
        check(certificate)


UNREAD: list[tf.Grammar] = [
    tf.regex(r"a(?=b)b"),
    tf.regex(r"\d"),
    tf.lark('start: "a"'),
    tf.choice(["a"]) + "b",
    tf.json_schema({"type": "integer"}),
    tf.json_schema({"type": "number"}, **OPTIONS),
    tf.json_schema({"type": "integer", "minimum": 2}, **OPTIONS),
    tf.json_schema({"type": "object"}, **OPTIONS),
    tf.json_schema({"type": "string", "pattern": "^a|b$"}, **OPTIONS),
    tf.json_schema({"type": "string", "format": "date"}, **OPTIONS),
]


@pytest.mark.parametrize("grammar", UNREAD, ids=[grammar.source for grammar in UNREAD])
def test_what_is_not_read_is_refused_in_words(grammar: tf.Grammar) -> None:
    with pytest.raises(tf.errors.OptionError, match="certificate"):
        tf.engine.certify(grammar, VOCABULARY, [])


def test_a_text_that_is_not_allowed_has_no_certificate() -> None:
    with pytest.raises(tf.errors.TokenRejected, match="position 1"):
        tf.engine.certify(tf.regex("ab"), VOCABULARY, [97, 97])


@pytest.mark.parametrize("wrong", [None, [], {}, {"format": 1}, "x", {"text": []}])
def test_what_is_no_certificate_is_refused(wrong: Any) -> None:
    with pytest.raises(Unproven):
        check(wrong)


def test_a_dead_intersection_is_proved_by_all_that_it_leads_to() -> None:
    schema = {"type": "string", "pattern": "^(?:aa)*$", "minLength": 3, "maxLength": 3}
    made = language({"kind": "json_schema", "text": json.dumps(schema), "options": OPTIONS})
    assert made.start is None
    schema["minLength"] = 2
    made = language({"kind": "json_schema", "text": json.dumps(schema), "options": OPTIONS})
    assert made.accepts(made.read(made.start, b'"aa"'))
    assert made.read(made.start, b'"aaa') is None


def test_what_is_too_large_is_not_decided() -> None:
    with pytest.raises(CannotCheck):
        language({"kind": "regex", "text": "(" * 60 + "a" + ")" * 60})
    with pytest.raises(CannotCheck):
        language({"kind": "regex", "text": "a{200000}"})


def test_it_imports_only_the_library_of_python_and_runs_alone(tmp_path: Path) -> None:
    lines = 0
    for file in FOLDER.glob("*.py"):
        tree = ast.parse(file.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                assert node.module.partition(".")[0] in sys.stdlib_module_names, file
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= sys.stdlib_module_names, file
            assert not isinstance(node, ast.ImportFrom) or node.level < 2
        lines += lines_of_code(file.read_text(), tree)
    assert lines <= 800
    shutil.copytree(FOLDER, tmp_path / "certificates")
    certificate = tf.engine.certify(tf.regex("a+"), VOCABULARY, [97])
    for digit, code, said in (("", 0, b"accepted: 1 tokens"), ("0", 1, b"refused: this does not hold")):
        certificate["vocabulary"]["sha256"] += digit
        (tmp_path / "certificate.json").write_text(json.dumps(certificate))
        command = [sys.executable, "-I", "-c", RUN, str(tmp_path), "certificate.json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == code, done
        assert (done.stdout + done.stderr).startswith(said)


RUN = """
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module("certificates", run_name="__main__", alter_sys=False)
"""


def lines_of_code(text: str, tree: ast.Module) -> int:
    """Without blanks, comments and docstrings."""
    docs: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for part in body if isinstance(body, list) else []:
            if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
                docs.update(range(part.lineno, (part.end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and line.strip()[0] != "#" and n not in docs for n, line in lines)


def test_the_command_writes_and_checks_them(tmp_path: Path) -> None:
    file, run = tmp_path / "certificate.json", CliRunner().invoke
    assert run(app, ["explain", "aab", "--regex", "a+b", "--certificate", str(file)]).exit_code == 0
    done = run(app, ["verify", str(file)])
    assert (done.exit_code, done.stdout) == (0, "accepted: 3 tokens, 3 states, masks of 257 tokens\n")
    certificate = json.loads(file.read_text())
    certificate["text"][0] = 98
    file.write_text(json.dumps(certificate))
    done = run(app, ["verify", str(file)])
    assert done.exit_code == 1
    assert "position 0" in done.stderr
    certificate["constraint"]["text"] = r"\d"
    file.write_text(json.dumps(certificate))
    assert run(app, ["verify", str(file)]).exit_code == 2
    file.write_text("{")
    assert run(app, ["verify", str(file)]).exit_code == 1
