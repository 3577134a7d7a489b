"""Patterns against the readers of their dialects, on short texts.

    python -m benchmarks.suites patterns --count 100000 --seed 1

Purpose: find a pattern that is read otherwise than by its own reader: Python's `re`, Rust's `regex` (as
pydantic has it), ECMA-262 with `u` (as node has it, where it is installed); in "auto" also `jsonschema-rs`.
Invariant: a verdict is the reader's, or the pattern is refused; what the reader refuses is refused.  In
"auto" a pattern of ECMA-262 is read as such; of others no verdict differs from the readers that take it, on
texts on which the dialects' own sets agree (ASCII without line ends).
Complexity: a pattern costs four grammars and some fifty texts.
Rejected: comparing languages as automata (no judge has one).
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import random
import re
import shutil
import subprocess
import tarfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs
import pydantic_core

from tokenform.errors import InvalidRegex, LimitExceeded, TokenformError, UnsatisfiableGrammar
from tokenform.frontends import regex

from .maskcheck import byte_vocabulary

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ "
# what is one construct to some reader, and a text that one of them finds it in
_CONSTRUCTS = [
    (r"\d", "7"),
    (r"\D", "a"),
    (r"\w", "k"),
    (r"\W", "-"),
    (r"\s", " "),
    (r"\S", "x"),
    (".", "q"),
    (r"\p{L}", "é"),
    (r"\P{L}", "1"),
    (r"\pL", "a"),
    (r"\p{Lu}", "A"),
    (r"\p{Greek}", "α"),
    (r"\p{Script=Greek}", "α"),
    (r"\p{lu}", "A"),
    (r"\p{Letter}", "a"),
    (r"\p{White_Space}", " "),
    (r"\x41", "A"),
    (r"\x{41}", "A"),
    (r"\u0041", "A"),
    (r"\u{41}", "A"),
    (r"\U00000041", "A"),
    (r"\cA", "\x01"),
    (r"\0", "\0"),
    (r"\07", "\x07"),
    (r"\101", "A"),
    (r"\1", ""),
    (r"\8", ""),
    (r"\k<n>", ""),
    ("^", ""),
    ("$", ""),
    (r"\b", ""),
    (r"\B", ""),
    (r"\A", ""),
    (r"\Z", ""),
    (r"\z", ""),
    (r"\<", ""),
    (r"\>", ""),
    (r"\b{start}", ""),
    ("(?i)", ""),
    ("(?s)", ""),
    ("(?m)", ""),
    ("(?x)", ""),
    ("(?u)", ""),
    ("(?a)", ""),
    ("(?-i)", ""),
    ("(?#c)", ""),
    ("{", "{"),
    ("}", "}"),
    ("]", "]"),
    (r"\é", "é"),
    ("é", "É"),
    ("ſ", "s"),
    ("K", "k"),
]
_MEMBERS = [
    "a-c",
    "b-",
    "-",
    "[",
    "^",
    ".",
    "&&",
    "--",
    "~~",
    "[:alpha:]",
    "[a]",
    r"\d",
    r"\W",
    r"\s",
    r"\b",
    r"\B",
    r"\-",
    r"\]",
    r"\_",
    r"\'",
    r"\<",
    r"\Z",
    r"\q",
    r"\p{L}",
    r"\pL",
    r"\x41",
    r"\x{41}",
    r"\1",
    r"\07",
    r"\é",
    "é-ü",
    r"\w-.",
]
_QUANTIFIERS = [
    "*",
    "+",
    "?",
    "{2}",
    "{1,}",
    "{0,2}",
    "{,2}",
    "{,}",
    "{ 2 }",
    "{}",
    "{2",
    "*?",
    "+?",
    "*+",
    "**",
    "{1}{2}",
]
_OPENINGS = [
    "(",
    "(?:",
    "(?=",
    "(?!",
    "(?<=",
    "(?<!",
    "(?<n>",
    "(?P<n>",
    "(?i:",
    "(?s:",
    "(?m:",
    "(?-i:",
    "(?x:",
    "(?>",
    "(?|",
]
_NODE = """
const lines = require('readline').createInterface({input: process.stdin});
lines.on('line', line => {
  const [pattern, texts] = JSON.parse(line);
  let said;
  try { const read = new RegExp(pattern, 'u'); said = texts.map(text => read.test(text)); }
  catch (error) { said = error.message; }
  console.log(JSON.stringify(said));
});
"""


class Node:
    """ECMA-262 with the `u` flag, by a process of node; one that is not installed has no verdicts."""

    def __init__(self) -> None:
        path = shutil.which("node")
        pipe = subprocess.PIPE
        self._process = path and subprocess.Popen([path, "-e", _NODE], stdin=pipe, stdout=pipe, text=True)

    def __call__(self, pattern: str, texts: list[str]) -> list[bool] | str | None:
        if not self._process:
            return None
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([pattern, texts]) + "\n")
        self._process.stdin.flush()
        said: list[bool] | str = json.loads(self._process.stdout.readline())
        if isinstance(said, str) and re.search(r"\(\?[ims]*-?[ims]*:|\(\?<", pattern):
            return None  # modifiers and groups of one name in two alternatives: ECMA-262 of 2025
        return said

    def close(self) -> None:
        """Ends the process."""
        if self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()


def by_python(pattern: str, texts: list[str], whole: bool = False) -> list[bool] | str | None:
    """Python's `re`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read = re.compile(pattern)
        except re.error as error:
            return None if "look-behind requires" in str(error) else str(error)
        except (ValueError, OverflowError, RecursionError) as error:
            return str(error)
    return [bool((read.fullmatch if whole else read.search)(text)) for text in texts]


def by_rust(pattern: str, texts: list[str]) -> list[bool] | str | None:
    """Rust's `regex`, by pydantic."""
    try:
        read = pydantic_core.SchemaValidator({"type": "str", "pattern": pattern})
    except pydantic_core.SchemaError as error:
        return None if "exceeds size limit" in str(error) else str(error)
    return [read.isinstance_python(text) for text in texts]


def by_validator(pattern: str, texts: list[str]) -> list[bool] | None:
    """`jsonschema-rs`, where it takes the pattern."""
    try:
        read = jsonschema_rs.validator_for({"pattern": pattern})
    except ValueError:
        return None
    return [read.is_valid(text) for text in texts]


def by_us(pattern: str, texts: list[str], dialect: Any) -> list[bool] | str | None:
    """Verdicts of a grammar; a message where it is refused as no pattern, None where it is too much."""
    try:
        automaton = regex(pattern, dialect=dialect).compile(byte_vocabulary())
        return [automaton.matches(text.encode()) for text in texts]
    except UnsatisfiableGrammar:
        return [False] * len(texts)
    except InvalidRegex as error:
        return str(error)
    except (LimitExceeded, TokenformError):
        return None


@dataclass
class Finding:
    """One disagreement."""

    dialect: str
    pattern: str
    detail: str


def _compare(dialect: str, pattern: str, texts: list[str], said: Any, ours: Any) -> Finding | None:
    if said is None or ours is None:
        return None
    if isinstance(said, str):
        return (
            None if isinstance(ours, str) else Finding(dialect, pattern, f"read, but its reader says: {said}")
        )
    if isinstance(ours, str):
        return Finding(dialect, pattern, f"refused, but its reader takes it: {ours}")
    for text, theirs, own in zip(texts, said, ours, strict=True):
        if theirs != own:
            return Finding(dialect, pattern, f"{text!r}: {own}, its reader: {theirs}")
    return None


def judge(pattern: str, texts: list[str], node: Node, read: Counter[str] | None = None) -> list[Finding]:
    """The disagreements on one pattern; `read` counts what was judged, by dialect."""
    python, rust, ecma = by_python(pattern, texts), by_rust(pattern, texts), node(pattern, texts)
    own = {name: by_us(pattern, texts, name) for name in ("python", "rust", "ecma", "auto")}
    if read is not None:
        read.update(name for name, said in own.items() if isinstance(said, list))
        read.update(f"{name}, too much" for name, said in own.items() if said is None)
    found = [
        _compare("python", pattern, texts, by_python(pattern, texts, whole=True), own["python"]),
        _compare("rust", pattern, texts, rust, own["rust"]),
        _compare("ecma", pattern, texts, ecma, own["ecma"]),
    ]
    ours = own["auto"]
    if isinstance(ecma, list):
        found.append(_compare("auto", pattern, texts, ecma, ours))
    elif isinstance(ours, list):
        found += [
            _compare("auto", pattern, *_plain(texts, said, ours))
            for said in _heard(pattern, python, rust, by_validator(pattern, texts))
        ]
    return [one for one in found if one is not None]


def _heard(pattern: str, python: Any, rust: Any, validator: Any) -> Iterator[list[bool]]:
    """Verdicts of those who read a pattern that is none of ECMA-262's, where it has no part that ECMA-262
    reads and they read otherwise."""
    if re.search(r"\[\^?\]", pattern) or r"\B" in pattern:
        return
    if isinstance(python, list):
        yield python
    if isinstance(validator, list):
        yield validator
    if isinstance(rust, list) and not re.search(r"\[[^\]]*(\[|&&|--|~~)", pattern):
        yield rust


def _plain(texts: list[str], said: list[bool], ours: list[bool]) -> tuple[list[str], list[bool], list[bool]]:
    kept = [i for i, text in enumerate(texts) if text.isascii() and text.isprintable()]
    return [texts[i] for i in kept], [said[i] for i in kept], [ours[i] for i in kept]


def random_pattern(rng: random.Random, depth: int = 3) -> tuple[str, str]:
    """A pattern, and a text that some reader may find it in."""
    parts, sample = "", ""
    for _ in range(rng.choice([1, 1, 2, 2, 3, 4])):
        kind = rng.random()
        if kind < 0.3:
            part = text = rng.choice("abcxyz019")
        elif kind < 0.4:
            text = rng.choice(_LETTERS if rng.random() < 0.5 else _PUNCTUATION)
            part = "\\" + text
        elif kind < 0.6:
            part, text = rng.choice(_CONSTRUCTS)
        elif kind < 0.75 or depth == 0:
            members = [rng.choice([*_MEMBERS, *"abc01_"]) for _ in range(rng.choice([1, 1, 2, 3]))]
            part, text = f"[{rng.choice(['', '', '^', ']'])}{''.join(members)}]", members[0][-1]
        else:
            inner, text = random_pattern(rng, depth - 1)
            part = f"{rng.choice(_OPENINGS) if rng.random() < 0.6 else '('}{inner})"
        if rng.random() < 0.25:
            part += rng.choice(_QUANTIFIERS)
            text *= rng.choice([0, 1, 2])
        if rng.random() < 0.08:
            part, text = f"{part}|{rng.choice('abc')}", rng.choice([text, "a"])
        parts, sample = parts + part, sample + text
    return parts, sample


def texts_for(rng: random.Random, pattern: str, sample: str) -> list[str]:
    """Short texts: the sample and its neighbours, and others of the pattern's characters."""
    letters = [*set(pattern), *"aAbkKZz9_- \n\r{}", "é", "É", "ſ", "٣", "\u2028", "\x1c", "\ufeff", "α"]
    texts = {
        "",
        sample,
        sample.swapcase(),
        f"{sample}\n",
        f"{sample}Z",
        f"a{sample}",
        sample[1:],
        sample[:-1],
    }
    texts |= {"".join(rng.choices(letters, k=rng.choice([1, 1, 2, 3, 4]))) for _ in range(24)}
    return sorted(texts)


def run(count: int, seed: int, patterns: Iterable[str] = ()) -> tuple[list[Finding], Counter[str]]:
    """The disagreements on given patterns and so many random ones, and how many were read in each dialect."""
    rng, node = random.Random(seed), Node()
    findings: list[Finding] = []
    read: Counter[str] = Counter()
    made = (random_pattern(rng) for _ in range(count))
    for pattern, sample in (*((pattern, "") for pattern in patterns), *made):
        read["patterns"] += 1
        findings += judge(pattern, texts_for(rng, pattern, sample), node, read)
    node.close()
    return findings, read


def patterns_of_data(folder: Path) -> list[str]:
    """Every pattern in the data: of MaskBench, the JSON-Schema-Test-Suite, and lists of patterns."""
    found: set[str] = set()
    with lzma.open(folder / "maskbench-dev.jsonl.xz", "rt") as lines:
        for line in lines:
            _collect(json.loads(line)["schema"], found)
    with tarfile.open(folder / "json-schema-test-suite.tar.xz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".json") else None
            if file is not None:
                _collect(json.load(file), found)
    text = (folder / "awrs-patterns.csv").read_text()
    found |= {row[0] for row in csv.reader(io.StringIO(text)) if row}
    return sorted(found)


def _collect(value: Any, found: set[str]) -> None:
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            pattern, patterns = part.get("pattern"), part.get("patternProperties")
            found |= {pattern} if isinstance(pattern, str) else set()
            found |= set(patterns) if isinstance(patterns, dict) else set()
            todo += part.values()
        elif isinstance(part, list):
            todo += part
