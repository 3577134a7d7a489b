"""Lays the crates of the compiled module into rust/vendor, and tells cargo to take them from there.

    python .ci/vendor.py

Crates that tests, benchmarks or the C library alone need stay as names without code, so that Cargo.lock still
holds: a third less.  For copies of the checkout (`.ci/sdist`): cargo's own index is no longer asked.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
VENDOR = ROOT / "rust" / "vendor"
CONFIG = """[source.crates-io]
replace-with = "vendored"

[source.vendored]
directory = "rust/vendor"

[net]
offline = true
"""


def cargo(*words: str) -> str:
    command = ["cargo", words[0], "--manifest-path", str(ROOT / "rust" / "Cargo.toml"), *words[1:]]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def empty(crate: Path, name: str, version: str) -> None:
    """Leaves a crate's name, version and features."""
    manifest = (crate / "Cargo.toml").read_text(encoding="utf-8")
    features = re.search(r"(?ms)^\[features\]\n.*?(?=^\[|\Z)", manifest)
    dependencies = re.findall(r"(?ms)^\[(?:target\..*?\.)?(?:build-)?dependencies\..*?(?=^\[|\Z)", manifest)
    package = json.loads((crate / ".cargo-checksum.json").read_text(encoding="utf-8")).get("package")
    shutil.rmtree(crate)
    (crate / "src").mkdir(parents=True)
    (crate / "src" / "lib.rs").write_text("// for tests alone: see .ci/vendor.py\n", encoding="utf-8")
    head = f'[package]\nname = "{name}"\nversion = "{version}"\nedition = "2021"\n\n'
    kept = head + "".join(dependencies) + (features[0] if features else "")
    (crate / "Cargo.toml").write_text(kept, encoding="utf-8")
    (crate / ".cargo-checksum.json").write_text(
        json.dumps({"files": {}, "package": package}), encoding="utf-8"
    )


def main() -> None:
    cargo("vendor", "--locked", "--quiet", str(VENDOR))
    tree = cargo(
        "tree", "--locked", "-p", "tokenform-py", "-e", "normal,build", "--target", "all", "--prefix", "none"
    )
    needed = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    for crate in sorted(VENDOR.iterdir()):
        text = (crate / "Cargo.toml").read_text(encoding="utf-8")
        name, version = (re.search(rf'(?m)^{key} = "(.*?)"', text) for key in ("name", "version"))
        assert name is not None and version is not None
        if (name[1], f"v{version[1]}") not in needed:
            empty(crate, name[1], version[1])
    (ROOT / ".cargo").mkdir(exist_ok=True)
    (ROOT / ".cargo" / "config.toml").write_text(CONFIG, encoding="utf-8")


if __name__ == "__main__":
    main()
