"""Every Python block of the README and of the documentation runs, and prints what stands under it.

The blocks of a page run one after the other in a module, with the packaged model.  A block of kind `text`
right under a Python block is what it prints, to the letter.  A block of kind `py` is another library's;
it runs by itself where that library is installed.
"""

from __future__ import annotations

import json
import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
SCRIPT = 'if __name__ == "__main__":'
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n?```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


PEER_BLOCK = re.compile(r"^```py\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[tuple[int, str, str | None]]:
    """(line, code, what it prints or None) of a page."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start(1)) + 1, m[1], m[2]) for m in BLOCK.finditer(text)]


def with_code(page: Path) -> bool:
    return "_build" not in page.parts and page.exists() and bool(blocks(page))


@pytest.mark.parametrize("page", filter(with_code, PAGES), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page(page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
                              tmp_path: Path) -> None:  # fmt: skip
    module = types.ModuleType(f"page_{re.sub('[^a-z]', '_', page.stem.lower())}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # dataclasses look their module up by name
    monkeypatch.chdir(tmp_path)  # pages may write files
    name = module.__name__
    for line, code, printed in blocks(page):
        module.__name__ = "__main__" if SCRIPT in code else name
        exec(compile("\n" * (line - 1) + code, str(page), "exec", dont_inherit=True), module.__dict__)
        out = capsys.readouterr().out
        if printed is not None:
            assert out.rstrip("\n") == printed.rstrip("\n"), f"{page.name}, line {line}"


def peers(page: Path) -> list[str]:
    return PEER_BLOCK.findall(page.read_text(encoding="utf-8"))


COMING_FROM = ROOT / "docs" / "coming-from.md"


@pytest.mark.parametrize("number", range(len(peers(COMING_FROM))))
def test_the_blocks_of_other_libraries(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    code = peers(COMING_FROM)[number]
    for name in ("outlines", "llguidance", "xgrammar"):
        if f"import {name}\n" in code:
            pytest.importorskip(name, reason=f"{name} is not installed")
    module = types.ModuleType("peer_block")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, str(COMING_FROM), "exec", dont_inherit=True), module.__dict__)


NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_from_top_to_bottom(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("notebook")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    cells = [
        cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"
    ]
    for number, cell in enumerate(cells):
        exec(
            compile("".join(cell["source"]), f"{path.name}:{number}", "exec", dont_inherit=True),
            module.__dict__,
        )
        kept = "".join("".join(each["text"]) for each in cell["outputs"] if each["output_type"] == "stream")
        out = capsys.readouterr().out
        if "drawn" not in cell["metadata"].get("tags", ()):  # draws may differ where a model rounds otherwise
            assert out.rstrip("\n") == kept.rstrip("\n"), f"{path.name}, cell {number}"


def test_there_are_seven_notebooks() -> None:
    assert len(NOTEBOOKS) == 7


def test_the_readme_is_short_and_shows_what_it_prints() -> None:
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") <= 200
    assert all(printed is not None for _, _, printed in blocks(ROOT / "README.md"))


def test_a_wrong_output_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("x\n\n```python\nprint(1)\n```\n```text\n2\n```\n\n```python\npass\n```\n")
    assert blocks(page) == [(4, "print(1)\n", "2\n"), (11, "pass\n", None)]
