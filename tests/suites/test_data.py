"""Readers of the data formats, and samples that depend on ids and seed alone."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from tokenform.errors import DataError
from tokenform_bench.data import Case, keywords_of, read_maskbench, read_suite, sample, suite_registry

RECORD = {
    "id": "a",
    "schema": {"type": "integer"},
    "tests": [{"valid": True, "data": 1}, {"valid": False, "data": "x"}],
}


def test_three_forms_of_the_same_data(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(RECORD))
    plain, packed = tmp_path / "c.jsonl", tmp_path / "c.jsonl.xz"
    plain.write_text(json.dumps(RECORD) + "\n\n")
    packed.write_bytes(lzma.compress(json.dumps(RECORD).encode()))
    cases = [list(read_maskbench(path)) for path in (folder, plain, packed)]
    assert cases[0] == cases[1] == cases[2]
    assert [(d.data, d.valid) for d in cases[0][0].documents] == [(1, True), ("x", False)]


def test_a_folder_of_bare_schemas(tmp_path: Path) -> None:
    (tmp_path / "point.json").write_text('{"type": "object"}')
    assert list(read_maskbench(tmp_path)) == [Case("point", {"type": "object"}, ())]
    (tmp_path / "Github_easy").mkdir()
    (tmp_path / "Github_easy" / "o1.json").write_text('{"type": "null"}')
    assert next((c.id, c.subset) for c in read_maskbench(tmp_path)) == ("Github_easy---o1", "Github_easy")


def test_a_folder_without_schemas_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no \.json files"):
        list(read_maskbench(tmp_path))


@pytest.mark.parametrize("text", ["{", "[1]", '{"id": 1'])
def test_what_is_not_a_case_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(RECORD) + "\n" + text)
    with pytest.raises(DataError, match=r"bad\.jsonl:2"):
        list(read_maskbench(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        list(read_maskbench(tmp_path / "nowhere.jsonl"))


def test_a_sample_does_not_depend_on_the_order_of_the_file() -> None:
    cases = [Case(str(i), {}, ()) for i in range(200)]
    chosen = sample(cases, 20, seed=3)
    assert chosen == sample(reversed(cases), 20, seed=3)
    assert chosen != sample(cases, 20, seed=4)
    assert chosen == sample(cases, None, seed=3)[:20]


@pytest.mark.parametrize(
    ("name", "subset"), [("Github_easy---o1", "Github_easy"), ("BFCL_java_0", "BFCL_java")]
)
def test_subset(name: str, subset: str) -> None:
    assert Case(name, {}, ()).subset == subset


def test_keywords_of() -> None:
    assert keywords_of({"not": {"items": [{"enum": [{"x": 1}]}]}}) == {"not", "items", "enum", "x"}


def test_the_suite_has_all_drafts_and_its_remotes(official_suite: Path) -> None:
    groups = list(read_suite(path=official_suite))
    assert {g.draft for g in groups} == {"draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"}
    assert sum(len(g.case.documents) for g in groups) == 8327
    assert sum(g.is_format for g in groups) > 50
    assert all("$schema" in g.case.schema for g in groups if isinstance(g.case.schema, dict))
    registry = suite_registry("draft7", official_suite)
    assert registry["http://localhost:1234/integer.json"]["type"] == "integer"
