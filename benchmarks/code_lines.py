"""Lines of code of the core, by folder: no blanks, no comments, no tests.

    python benchmarks/code_lines.py              # rust/core/src
    python benchmarks/code_lines.py --files      # each file too

Purpose: whether the core grows or shrinks.  What `#[cfg(test)]` stands before is a test, modules in files of
their own included.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

CORE = Path(__file__).parents[1] / "rust" / "core" / "src"


def code(text: str) -> int:
    """Lines that are neither blank nor a comment nor in a module or item for tests."""
    count, indent, skipping = 0, "", False
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare.startswith("//"):
            continue
        if skipping:
            first = indent == "?"
            indent = line[: len(line) - len(line.lstrip())] if first else indent
            skipping = not ((first and bare.endswith(";")) or line.startswith(indent + "}"))
        elif bare.startswith("#[cfg(test)]"):
            skipping, indent = True, "?"
        else:
            count += 1
    return count


def of_tests(file: Path) -> bool:
    """Whether the module that a file is stands behind `#[cfg(test)]` in the one above."""
    above = file.parent / "mod.rs" if file.name != "mod.rs" else file.parent.parent / "mod.rs"
    name = file.stem if file.name != "mod.rs" else file.parent.name
    above = above if above.exists() else above.parent / "lib.rs"
    return bool(re.search(rf"#\[cfg\(test\)\]\n\s*(pub(\([^)]*\))? )?mod {name};", above.read_text()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", action="store_true", help="a line for each file")
    chosen = parser.parse_args()
    files = {
        file.relative_to(CORE): code(file.read_text()) for file in CORE.rglob("*.rs") if not of_tests(file)
    }
    folders: Counter[str] = Counter()
    for file, count in files.items():
        folders[file.parts[0]] += count
    if chosen.files:
        for file, count in sorted(files.items(), key=lambda one: -one[1]):
            print(f"{count:7,} {file}")
    for folder, count in folders.most_common():
        print(f"{count:7,} {folder}")
    print(f"{sum(folders.values()):7,} lines")


if __name__ == "__main__":
    main()
