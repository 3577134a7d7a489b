"""The comparison by keyword: cases are judged, this engine enforces all, the page has all."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tokenform_bench.engines import EngineOptions, load

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def features() -> ModuleType:
    found = importlib.util.spec_from_file_location("features", ROOT / "benchmarks" / "features.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)  # judges its own cases by jsonschema
    return module


def test_every_keyword_of_the_comparison_is_enforced(features: ModuleType) -> None:
    engine = load("tokenform", features.BYTES, EngineOptions(whitespace="spaced"))
    verdicts = {feature.name: features.verdict(engine, feature) for feature in features.FEATURES}
    assert {name: found for name, found in verdicts.items() if found != ("enforced", "")} == {}


def test_a_slip_is_seen(features: ModuleType) -> None:
    engine = load("tokenform", features.BYTES, EngineOptions(whitespace="spaced"))
    integers = {"type": "integer"}
    assert features.verdict(engine, features.Feature("", integers, [1], [2])) == ("loosened", "accepts 2")
    assert features.verdict(engine, features.Feature("", integers, ["a"], [])) == ("too tight", 'refuses "a"')
    assert features.verdict(engine, features.Feature("", {"type": "x"}, [], []))[0] == "refuses"


def test_the_page_has_a_line_for_each_keyword(features: ModuleType) -> None:
    page = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    table = page.partition("## Keyword by keyword")[2].partition("\n## ")[0]
    names = re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)
    shown = [name for name in names if name not in ("keyword", "---") and not name.startswith("all: ")]
    assert shown == [feature.name for feature in features.FEATURES]
