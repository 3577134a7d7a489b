"""What writers of JSON write is taken under the default options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.suites.writers import FORMS, judge

from tokenform_bench.data import Case, Document, read_maskbench, sample


def test_each_form_writes_the_document() -> None:
    data = {"é/<a>&\u2028": [1, 1.0, 1e21, 1.5e-5, 1e-7, -0.25, [], {}, [True, None], {"b": "\t\x01\x7f😀"}]}
    for form, write in FORMS.items():
        assert json.loads(write(data)) == data, form
    assert FORMS["JSON.stringify, 2"]([1.0, {}]) == "[\n  1,\n  {}\n]"
    assert FORMS["Go"](["<", 1e21, 1e-7]) == '["\\u003c",1e+21,1e-7]'
    assert FORMS["serde_json"]([1.0, 1e16]) == "[1.0,1e16]"


def test_what_is_refused_is_told_with_its_place() -> None:
    case = Case("one", {"type": "array"}, (Document([1, "é"], True), Document(3, False)))
    assert judge([case]).share == 1
    taken = judge([case], whitespace="compact", strings="canonical")
    assert taken.judged.total() == len(FORMS) and 0 < taken.share < 1
    assert ("json.dumps", "one", "after '[1,' not ' \"\\\\u00e9\"]'") in taken.refused, taken.refused


def test_documents_of_200_schemas(maskbench: Path) -> None:
    taken = judge(sample(read_maskbench(maskbench), 200, seed=3))
    assert taken.share >= 0.999 and taken.judged.total() > 2000, taken.report()


@pytest.mark.slow
def test_every_development_document(maskbench: Path) -> None:
    taken = judge(read_maskbench(maskbench))
    assert taken.share >= 0.999 and taken.judged.total() > 50_000, taken.report()
