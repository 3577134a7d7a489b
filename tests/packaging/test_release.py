"""What a release is made of: its jobs, its recipes, its packages for others, its list of crates."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.metadata import files
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import tokenform as tf

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / ".github" / "workflows" / "release.yml"
WASM = ROOT / "rust" / "wasm"

pytestmark = pytest.mark.skipif(not RELEASE.is_file(), reason="the tests run outside the repository")


def jobs(matrix: dict[str, Any]) -> list[dict[str, str]]:
    """The jobs of a matrix, as GitHub makes them: `include` joins those that it contradicts nowhere."""
    axes = {name: values for name, values in matrix.items() if name != "include"}
    made = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    plain = [dict(one) for one in made]
    for entry in matrix["include"]:
        fitting = [
            place
            for place, one in enumerate(plain)
            if all(one[name] == value for name, value in entry.items() if name in one)
        ]
        for place in fitting:
            made[place] |= entry
        if not fitting:
            made.append(dict(entry))
    return made


def test_every_wheel_has_a_machine_and_a_standard() -> None:
    yaml = pytest.importorskip("yaml", reason="pip install pyyaml")
    matrix = yaml.safe_load(RELEASE.read_text(encoding="utf-8"))["jobs"]["wheels"]["strategy"]["matrix"]
    wheels = jobs(matrix)
    for job in wheels:
        assert {"target", "python", "os", "rust", "manylinux"} <= set(job), job
        assert ("musl" in job["target"]) == job["manylinux"].startswith("musl") == ("image" in job)
    names = {(job["target"], job["python"]) for job in wheels}
    assert len(names) == len(wheels)
    for target in ("linux-x86_64", "linux-aarch64", "macos-x86_64", "macos-arm64", "windows-x86_64"):
        assert {(target, python) for python in ("3.10", "3.13t", "3.14t")} <= names
    others = {"musllinux-x86_64", "musllinux-aarch64", "windows-arm64", "linux-riscv64"}
    assert others <= {target for target, _ in names}
    assert [job["target"] for job in wheels if job.get("untried")] == ["linux-riscv64"]


def test_the_recipe_asks_for_what_the_package_asks_for() -> None:
    recipe = (ROOT / "deploy" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = project.partition("\ndependencies = [")[2].partition("\n]")[0]
    wanted = {f"python {version}" for version in re.findall(r'requires-python = "(.*?)"', project)}
    wanted |= {re.sub(r"^([\w-]+)", r"\1 ", one) for one in re.findall(r'^ +"(.*?)"', listed, re.MULTILINE)}
    wanted = {one.replace("jsonschema [format]", "jsonschema-with-format ") for one in wanted}
    run = recipe.partition("\n  run:\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"^ +- (.*)$", run, re.MULTILINE)) == wanted and len(wanted) > 6
    assert f'version = "{tf.__version__}"' in recipe


def test_the_types_for_javascript_are_those_of_the_script() -> None:
    """Each exported class has exactly the members that its types declare."""
    script, types = ((WASM / name).read_text(encoding="utf-8") for name in ("tokenform.js", "tokenform.d.ts"))

    def members(text: str, pattern: str) -> dict[str, set[str]]:
        classes = re.findall(
            r"^(?:export |declare )?(?:export )?class (\w+)[^{]*{\n(.*?)^}", text, re.MULTILINE | re.DOTALL
        )
        return {
            name: set(re.findall(pattern, body, re.MULTILINE)) - {"constructor"} for name, body in classes
        }

    written = members(script, r"^  (?:get )?(\w+)\([^\n]*{$")
    declared = members(types, r"^  (?:readonly )?(\w+)[(:?]")
    del written["Engine"]  # not exported
    declared["TokenformError"] -= {"kind"}  # set by the constructor
    assert written == declared and {"Vocabulary", "Grammar", "Automaton", "Matcher", "Tokenform"} <= set(
        written
    )
    assert re.findall(r"^export (?:async )?function (\w+)", script, re.MULTILINE) == ["load"]


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_the_package_for_javascript_holds_its_files(tmp_path: Path) -> None:
    copy = tmp_path / "wasm"
    shutil.copytree(WASM, copy)
    (copy / "tokenform.wasm").write_bytes(b"")
    command = ["npm", "pack", "--dry-run", "--json", "--offline"]
    (told,) = json.loads(subprocess.check_output(command, cwd=copy, timeout=120))
    assert {file["path"] for file in told["files"]} == {
        "README.md", "package.json", "tokenform.d.ts", "tokenform.js", "tokenform.wasm",
    }  # fmt: skip
    assert told["version"] == tf.__version__


def test_the_list_of_crates_names_those_of_the_lock_file() -> None:
    (path,) = [
        file for file in files("tokenform") or () if file.match("sboms/*.cyclonedx.json")
    ] or pytest.skip("installed without a wheel")
    told = json.loads(path.read_text())
    assert told["bomFormat"] == "CycloneDX"
    named = {(one["name"], one["version"]) for one in told["components"]}
    lock = (ROOT / "rust" / "Cargo.lock").read_text(encoding="utf-8")
    locked = set(re.findall(r'^name = "(.*?)"\nversion = "(.*?)"', lock, re.MULTILINE))
    assert named <= locked and {"tokenform-core", "pyo3", "libmimalloc-sys"} <= {name for name, _ in named}
