"""What the page for operators promises, rehearsed with this checkout."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "deploy" / "rehearse.py"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_what_the_page_promises_holds(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    command = shlex.join([sys.executable, "-m", "tokenform"])
    asked = [sys.executable, str(SCRIPT), "--tokenform", command]
    done = subprocess.run(asked, capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("held") >= 8


def test_a_promise_that_is_broken_is_found():
    """A command that never serves, and one that is not there."""
    for command in ("false", "/no/such/tokenform"):
        asked = [sys.executable, str(SCRIPT), "--tokenform", command, "--only", "counts"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=200)
        assert done.returncode == 1 and done.stdout.startswith("BROKEN counts"), done.stdout + done.stderr
