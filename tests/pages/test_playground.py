"""The playground as static files: what Python reads comes along as bytes."""

from __future__ import annotations

import base64
import importlib.util
import json
from pathlib import Path

from tokenform.engine import Grammar

SCRIPT = Path(__file__).parents[2] / "docs" / "playground.py"


def test_the_playground_is_written_with_grammars_that_python_has_read(tmp_path: Path) -> None:
    found = importlib.util.spec_from_file_location("playground", SCRIPT)
    assert found is not None and found.loader is not None
    playground = importlib.util.module_from_spec(found)
    found.loader.exec_module(playground)
    (engine := tmp_path / "tokenform.wasm").write_bytes(b"the engine")
    playground.write(tmp_path / "site", engine)
    examples = json.loads((tmp_path / "site" / "examples.json").read_text())
    read = [one for one in examples if one["kind"] in ("lark", "tools")]
    assert read
    for example in read:
        assert Grammar.from_bytes(base64.b64decode(example["bytes"]))
