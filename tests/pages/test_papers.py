"""docs/papers.md: every paper is on it, and every file and name that it points to exists."""

from __future__ import annotations

import importlib
import json
import lzma
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
SHARED = Path(os.environ.get("TOKENFORM_SHARED", ROOT.parent / "shared"))
DRAFTS = "tokenform.decoding.speculative"
PLACES = ("tokenform", f"{DRAFTS}.drafters", f"{DRAFTS}.policies", "tokenform.decoding.diffusion")


def missing(pointer: str) -> str | None:
    """What a pointer of the page (a file, a command, a name) lacks; None for nothing."""
    files = re.findall(r"[\w./-]+/[\w./-]*\w\.\w+|[\w-]+(?:/[\w.-]+)*/(?=$| )", pointer)
    if files or pointer.startswith(("python ", "pytest ")):
        lost = [file for file in files if not (ROOT / file).exists()]
        return f"no file {lost[0]}" if lost or not files else None
    head, *rest = pointer.split(".")
    found = [importlib.import_module(place) for place in PLACES] if head != "tf" else []
    names = [head, *rest] if head != "tf" else rest
    for start in found or [importlib.import_module("tokenform")]:
        here: object = start
        for name in names:
            here = getattr(here, name, None)
        if here is not None:
            return None
    return f"no name {pointer}"


def test_what_the_page_points_to_exists() -> None:
    pointers = re.findall(r"`([^`]+)`", PAGE)
    assert len(pointers) > 80
    assert {pointer: lost for pointer in pointers if (lost := missing(pointer))} == {}


def test_a_slip_is_seen() -> None:
    assert (
        missing("tf.ASAp") is None
        and missing("DraftModel") is None
        and missing("benchmarks/tokenform_bench/") is None
    )
    assert missing("tf.ASAq") and missing("KSec") and missing("docs/paper.md")
    assert missing("python benchmarks/zooo.py --quick")


def test_every_paper_is_on_the_page() -> None:
    file = SHARED / "data" / "papers.jsonl.xz"
    if not file.exists():
        pytest.skip(f"the list of papers is not here: {file} (TOKENFORM_SHARED names the folder)")
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        papers = [json.loads(line) for line in lines]
    rows = re.findall(r"^\| (.+?) \|", PAGE, re.MULTILINE)
    shown = [row for row in rows if row not in ("paper", "---")]
    assert sorted(shown) == sorted(" ".join(paper["title"].split()).replace("|", "/") for paper in papers)


def test_nothing_is_quoted_from_an_abstract() -> None:
    """No eight words in a row that stand in the paper's own abstract."""
    file = SHARED / "data" / "papers.jsonl.xz"
    if not file.exists():
        pytest.skip(f"the list of papers is not here: {file} (TOKENFORM_SHARED names the folder)")
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        abstracts = " ".join(json.loads(line)["abstract"] for line in lines).lower()
    known = re.findall(r"[a-z]+", abstracts)
    runs = {tuple(known[i : i + 8]) for i in range(len(known))}
    for row in re.findall(r"^\| .+? \| (.+?) \|", PAGE, re.MULTILINE):
        words = re.findall(r"[a-z]+", row.lower())
        assert not any(tuple(words[i : i + 8]) in runs for i in range(len(words) - 7)), row
