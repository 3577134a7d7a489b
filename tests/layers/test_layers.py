"""Who imports whom: read from the syntax trees, so that imports inside functions count too."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "tokenform"
LAYERS = ("errors", "frontends", "engine", "masking", "decoding", "integrations", "server", "cli")
"""From the lowest to the highest; a module imports its own layer and lower ones."""
BESIDE = {
    "_core": -1,
    "certificates": LAYERS.index("errors"),
    "disk_cache": LAYERS.index("errors"),
    "version": LAYERS.index("errors"),
    "batch": LAYERS.index("integrations"),
    "builtin": LAYERS.index("engine"),
    "tool_formats": LAYERS.index("frontends"),
    "combinators": LAYERS.index("frontends"),
    "samplers": LAYERS.index("decoding"),
    "__main__": LAYERS.index("cli"),
}
"""Parts beside the chain, by the highest layer that they may be counted to: the core is below everything,
`tool_formats`, `combinators` and `samplers` are public faces of their layers,
the built-in model is opened by integrations."""
TORCH_FROM = LAYERS.index("masking")
TRANSFORMERS = {"integrations", "builtin"}


def part_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py").removesuffix(".pyi")


def imports_of(path: Path) -> list[tuple[str, int]]:
    """Absolute names of imported modules (`from a import b` gives a.b), with their lines; those under
    `if TYPE_CHECKING:` too."""
    package = ["tokenform", *path.relative_to(PACKAGE).parent.parts]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, [base, node.module]))
            found += [(f"{module}.{alias.name}", node.lineno) for alias in node.names]
    return found


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def rank(part: str) -> int:
    return BESIDE[part] if part in BESIDE else LAYERS.index(part)


def breaches(path: Path) -> list[str]:
    part = part_of(path)
    wrong = []
    for name, line in imports_of(path):
        parts = name.split(".")
        if parts[0] == "tokenform":
            target = parts[1] if len(parts) > 1 else ""
            public = target not in LAYERS and target not in BESIDE
            if public and part != "cli":
                wrong.append(f"line {line}: imports the package's public face ({name})")
            elif not public and target != part and rank(target) > rank(part):
                wrong.append(f"line {line}: {part} imports {target}, which is above it")
        elif parts[0] in ("benchmarks", "tokenform_bench"):
            wrong.append(f"line {line}: {name} isn't installed with the package")
        elif parts[0] == "torch" and part not in BESIDE and rank(part) < TORCH_FROM:
            wrong.append(f"line {line}: torch below masking")
        elif parts[0] == "transformers" and part not in TRANSFORMERS:
            wrong.append(f"line {line}: transformers outside {sorted(TRANSFORMERS)}")
    return wrong


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downwards(path):
    assert not breaches(path)


def test_every_part_has_a_layer():
    parts = {part_of(path) for path in MODULES}
    assert parts <= {*LAYERS, *BESIDE}


def test_the_check_sees_a_breach(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path)
    module = tmp_path / "engine" / "bad.py"
    module.parent.mkdir()
    module.write_text(
        "import benchmarks.suites\nimport tokenform_bench\n"
        "def f():\n    import torch\n    from ..decoding import loop\n    from tokenform import cli\n"
    )
    assert len(breaches(module)) == 5


def test_importing_the_package_imports_neither_torch_nor_transformers():
    code = "import sys, tokenform, tokenform.cli; print({'torch', 'transformers'} & set(sys.modules))"
    paths = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "set()"


def test_every_module_can_be_imported():
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in MODULES]
    code = """
import importlib, sys
from tokenform.errors import MissingExtra
for name in sys.stdin.read().split():
    try:
        importlib.import_module(name.removesuffix(".__init__"))
    except (ModuleNotFoundError, MissingExtra) as error:  # a package that this environment has not
        if (getattr(error, "name", None) or "").startswith("tokenform"):
            raise
"""
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="\n".join(name for name in names if not name.endswith("__main__")),
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
