"""The check of the built pages finds links that lead nowhere; the pages that were built here have none."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "_build" / "html"

found = importlib.util.spec_from_file_location("docs_links", ROOT / "docs" / "links.py")
assert found is not None and found.loader is not None
links = importlib.util.module_from_spec(found)
found.loader.exec_module(links)


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "index.html").write_text('<h1 id="top &amp; more">A</h1><img src="no.png">')
    good = [
        "a/",
        "a/index.html#top%20&amp;%20more",
        "#here",
        "https://elsewhere.example/x",
        "mailto:a@b.example",
        "a",
    ]
    bad = ["b.html", "a/#bottom", "#../a/index.html", "../beside.html", "a/index.html?x#bottom"]
    text = "".join(f'<a href="{link}">x</a>' for link in [*good, *bad])
    (tmp_path / "index.html").write_text(f'<p id="here">{text}')
    dead = [(str(page), link) for page, link in links.dead(tmp_path)]
    assert dead == [("a/index.html", "no.png"), *(("index.html", link) for link in bad)]


@pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="the pages are not built: `make docs`")
def test_no_link_of_the_built_pages_leads_nowhere() -> None:
    pages = list(SITE.rglob("*.html"))
    assert len(pages) > 40 and list(links.dead(SITE)) == []
