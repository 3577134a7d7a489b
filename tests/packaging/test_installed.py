"""What an installation promises: one version, typed, and an answer where an optional package is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tokenform as tf
from tokenform import errors

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "pyproject.toml"
WITHOUT_MODELS = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "transformers", "tokenizers", "safetensors"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def without_models(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has the base package alone."""
    return subprocess.run([sys.executable, "-c", WITHOUT_MODELS + code], capture_output=True, text=True)


def project() -> str:
    if not PROJECT.exists():
        pytest.skip("the tests run outside the repository: there is no pyproject.toml to compare with")
    return PROJECT.read_text(encoding="utf-8")


def test_one_version_everywhere() -> None:
    assert f'\nversion = "{tf.__version__}"\n' in project()
    measuring = (ROOT / "benchmarks" / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{tf.__version__}"\n' in measuring
    assert f'"tokenform=={tf.__version__}"' in measuring
    assert f'\nversion = "{tf.__version__}"\n' in (ROOT / "rust" / "Cargo.toml").read_text(encoding="utf-8")
    assert f"\nversion: {tf.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[?([0-9.]+)", changes, re.MULTILINE)[0] == tf.__version__


def test_every_extra_that_an_error_names_brings_its_package() -> None:
    table = project().partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    extras = dict(re.findall(r"^(\w+) = \[(.*?)\]$", table, re.MULTILINE | re.DOTALL))
    listed = {
        "outlines_core": "outlines-core",
        "lmformatenforcer": "lm-format-enforcer",
        "ray": "ray[data]",
    }
    for package, extra in errors.EXTRAS.items():
        assert f'"{listed.get(package, package)}>=' in extras[extra], (package, extra)


def test_the_package_is_marked_as_typed() -> None:
    assert (Path(tf.__file__).parent / "py.typed").is_file()


def test_the_grammars_come_with_the_package() -> None:
    assert tf.grammars.sql().source and len(tf.grammars.names()) == 20


def test_python_m_tokenform() -> None:
    done = subprocess.run([sys.executable, "-m", "tokenform", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"tokenform {tf.__version__}\n")


@pytest.mark.parametrize(
    "code",
    [
        "import tokenform as tf; tf.Generator",
        "import tokenform as tf; tf.generate('x', regex='a')",
        "from tokenform import CARS",
        "import tokenform as tf; tf.drafters",
        "from tokenform.integrations.transformers import GrammarLogitsProcessor",
        "from tokenform.masking import apply_mask_",
        "import tokenform.builtin; tokenform.builtin.load()",
    ],
)
def test_what_needs_a_model_says_which_extra(code: str) -> None:
    done = without_models(code)
    assert done.returncode == 1
    assert re.search(
        r"MissingExtra: this needs (torch|transformers), which is not installed: "
        r'pip install "tokenform\[models\]"\n$',
        done.stderr,
    ), done.stderr


def test_the_engine_needs_no_model() -> None:
    done = without_models("""
import tokenform as tf
vocabulary = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])
automaton = tf.json_schema({"type": "integer", "multipleOf": 7}).compile(vocabulary)
assert automaton.mask(automaton.start).any() and automaton.check(b"49") is None
calls = tf.tools([{"name": "f", "parameters": {"type": "object"}}], format="hermes")
assert calls.parse('<tool_call>\\n{"name": "f", "arguments": {}}\\n</tool_call>')[0].name == "f"
assert tf.grammars.json().compile(vocabulary).check(b"[1]") is None
assert not {"torch", "transformers"} & set(sys.modules)
""")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_needs_no_model_for_what_the_engine_does() -> None:
    call = "import sys; sys.argv = ['tokenform', {}]; from tokenform.cli import main; main()"
    done = without_models(call.format("'explain', 'ab', '--regex', 'abc'"))
    assert done.returncode == 0, done.stderr
    done = without_models(call.format("'generate', 'x', '--regex', 'abc'"))
    assert done.returncode == 2
    assert done.stdout == "" and done.stderr.startswith("tokenform: this needs torch, which is not installed")


def test_commands_that_measure_say_which_package_they_need() -> None:
    absent = WITHOUT_MODELS.replace(
        '"torch", "transformers", "tokenizers", "safetensors"', '"tokenform_bench"'
    )
    call = "import sys; sys.argv = ['tokenform', {}]; from tokenform.cli import main; main()"
    for command in ("'evaluate', 'masks', '--limit', '3'", "'evaluate', '--help'", "'bench', 'serve'"):
        done = subprocess.run(
            [sys.executable, "-c", absent + call.format(command)], capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert "needs tokenform-bench, which is not installed: pip install tokenform-bench" in done.stderr


def test_an_error_that_is_looked_for_in_the_package_is_found() -> None:
    with pytest.raises(AttributeError, match=r"it is tokenform\.errors\.TokenRejected"):
        tf.TokenRejected  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        tf.nothing  # noqa: B018
