"""Links of the built pages that lead nowhere: to a file that is not there, or a place that a page lacks.

    python docs/links.py docs/_build/html

Prints each with its page and ends with 1 where there are any.  Addresses of other sites are left alone:
whether they answer is nothing that a build should hang on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """See `HTMLParser`."""
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            elif name == "id" or (name == "name" and tag == "a"):
                self.places.add(value or "")


@cache
def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def dead(site: Path) -> Iterator[tuple[Path, str]]:
    """Pages with the links of theirs that lead nowhere."""
    for path in sorted(site.rglob("*.html")):
        for link in read(path).links:
            if not leads(path, link):
                yield path.relative_to(site), link


def leads(path: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return False
    place = unquote(parts.fragment)
    return not place or target.suffix != ".html" or place in read(target).places


if __name__ == "__main__":
    found = list(dead(Path(sys.argv[1]).resolve()))
    for page, link in found:
        print(f"{page}: {link}")
    sys.exit(f"{len(found)} links lead nowhere" if found else 0)
