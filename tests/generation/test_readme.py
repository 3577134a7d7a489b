"""The Python blocks of the README and of docs/speculation.md run as they stand, with the packaged model."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_quick_start_runs(capsys, monkeypatch):
    blocks = re.findall(
        r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert blocks
    module = types.ModuleType("quick_start")  # dataclasses look their module up by name
    monkeypatch.setitem(sys.modules, "quick_start", module)
    for block in blocks:
        exec(compile(block, str(README), "exec", dont_inherit=True), module.__dict__)
    person, *_ = capsys.readouterr().out.splitlines()
    assert person.startswith("Person(name=")
    assert isinstance(module.result.value, module.Person)
    assert [len(texts) for texts in module.texts] == [4, 4]


def test_the_blocks_about_speculation_run():
    page = README.parent / "docs" / "speculation.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec", dont_inherit=True), names)
