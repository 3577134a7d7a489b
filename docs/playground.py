"""The playground as static files: the page, the engine in WebAssembly, the built-in model's tokens.

    python docs/playground.py docs/_build/html/playground

Needs the module that `make wasm` builds; without it a page is written that says so.  Grammars in
Lark's language and tools are read by Python, so the examples' come along as bytes.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
from pathlib import Path

from tokenform.builtin.loading import WEIGHTS, read_tokenizer
from tokenform.engine import Vocabulary
from tokenform.server.playground import queries

ROOT = Path(__file__).parents[1]
PAGE = Path(queries.__file__).parent / "page"
SCRIPT = ROOT / "rust" / "wasm" / "tokenform.js"


def module() -> Path | None:
    """The engine, where it was built; TOKENFORM_NATIVE: another folder to look in."""
    folders = [ROOT / "rust" / "target" / "wasm32-unknown-unknown" / "release"]
    folders += map(Path, filter(None, [os.environ.get("TOKENFORM_NATIVE")]))
    return next(
        (folder / "tokenform.wasm" for folder in folders if (folder / "tokenform.wasm").is_file()), None
    )


def write(out: Path, engine: Path) -> None:
    """Writes the site's playground."""
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(PAGE, out)
    shutil.copy(SCRIPT, out)
    shutil.copy(engine, out)
    vocabulary = Vocabulary.from_tokenizer(read_tokenizer(WEIGHTS / "model"))
    tokens = [base64.b64encode(token).decode() for token in vocabulary.tokens]
    _write(out / "vocabulary.json", {"tokens": tokens, "eos": vocabulary.eos, "special": vocabulary.special})
    _write(out / "config.json", {"engine": "wasm"})
    examples = json.loads((PAGE / "examples.json").read_text(encoding="utf-8"))
    for example in examples:
        if example["kind"] in ("lark", "tools"):
            fields = {name: example[name] for name in ("kind", "source", "options")}
            grammar = queries.ConstraintQuery(**fields).grammar
            example["bytes"] = base64.b64encode(grammar.to_bytes()).decode()
    _write(out / "examples.json", examples)


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


ABSENT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>tokenform playground</title>
<p>These pages were built without the playground: <code>make wasm</code> before <code>make docs</code>.
<a href="../guides/serving.html#the-playground">What it is</a>.</p>
"""

if __name__ == "__main__":
    built = module()
    if built is None:
        out = Path(sys.argv[1])
        out.mkdir(parents=True, exist_ok=True)
        (out / "index.html").write_text(ABSENT, encoding="utf-8")  # what links here finds why there is none
        print("no playground: tokenform.wasm is not built (make wasm)")
    else:
        write(Path(sys.argv[1]), built)
        print(f"{sys.argv[1]}/index.html")
