"""Models are opened by name, path or file: once, one at a time, and beside the event loop."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

import tokenform as tf
from tokenform.builtin.loading import WEIGHTS
from tokenform.engine.opening import opened_once
from tokenform.errors import MissingExtra, ModelError, OptionError
from tokenform.integrations import models

BY_PATH = str(WEIGHTS / "model")
RUNS = [
    pytest.param(model, id=f"{name} {number}", marks=[pytest.mark.slow] if number > 1 else [])
    for model, name in (("", "built in"), (BY_PATH, "by path"))
    for number in range(1, 21)
]
"""Of what goes wrong by chance."""

PROMPT = "The order was placed by Maria Rossi and comes to 412.50 euros in total."
SCHEMA = {
    "type": "object",
    "properties": {
        "customer": {"type": "string", "maxLength": 30},
        "total": {"type": "number", "maximum": 10000},
    },
    "required": ["customer", "total"],
}

FROM_THREADS = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import tokenform as tf

model = sys.argv[1] or None
schema, prompt = json.loads(sys.argv[2]), sys.argv[3]
at_once = Barrier(4)

def write(_):
    at_once.wait()
    return tf.generate(prompt, schema=schema, model=model, max_tokens=60).text

with ThreadPoolExecutor(4) as threads:
    texts = list(threads.map(write, range(4)))
after = tf.generate(prompt, schema=schema, model=model, max_tokens=60).text
print(json.dumps({"texts": texts, "after": after}))
"""

IN_A_LOOP = """
import asyncio, json, sys, time
import pydantic, torch
from transformers import AutoTokenizer, LlamaForCausalLM
from tokenform import agenerate, AsyncGenerator, regex

model, slow = sys.argv[1], 3.0
read = AutoTokenizer.from_pretrained

def read_slowly(*arguments, **options):
    time.sleep(slow)
    return read(*arguments, **options)

AutoTokenizer.from_pretrained = read_slowly

class Slow(pydantic.BaseModel):
    n: bool

    @classmethod
    def __get_pydantic_json_schema__(cls, schema, handler):
        time.sleep(slow)
        return handler(schema)

async def shared():
    async with AsyncGenerator(model, drafter=None, device="cpu") as generator:
        await generator.sample("a", regex("[a-z]{2}"), max_tokens=4)

async def streamed():
    async with AsyncGenerator(model, drafter=None) as generator:
        async for _ in generator.stream("a", Slow, max_tokens=30, partial=True):
            pass

async def held_by(call):
    longest, last = 0.0, time.perf_counter()
    task = asyncio.create_task(call)
    while not task.done():
        await asyncio.sleep(0.001)
        longest, last = max(longest, time.perf_counter() - last), time.perf_counter()
    await task
    return longest

async def main():
    return {
        "open": await held_by(agenerate("a", regex="[a-z]{2}", model=model, max_tokens=4)),
        "read a type": await held_by(agenerate("a", schema=Slow, model=model, max_tokens=30)),
        "open one": await held_by(shared()),
        "stream a type": await held_by(streamed()),
    }

print(json.dumps(asyncio.run(main())))
"""
"""What is slow is made so: a folder and a type take seconds to read."""

WORK_IN_A_LOOP = """
import asyncio, json, sys, time
import pydantic, torch
from transformers import AutoTokenizer, LlamaForCausalLM
from tokenform import agenerate, AsyncGenerator, regex

model = sys.argv[1]
fields = {f"field_{n}": (int | None, n) for n in range(1500)}
Large = pydantic.create_model("Large", first=(bool, ...), **fields)

async def shared():
    async with AsyncGenerator(model, drafter=None, device="cpu") as generator:
        await generator.sample("a", regex("[a-z]{2}"), max_tokens=4)

async def streamed():
    async with AsyncGenerator(model, drafter=None) as generator:
        async for _ in generator.stream("a", Large, max_tokens=30, partial=True):
            pass

async def held_by(call):
    longest, last = 0.0, time.thread_time()
    task = asyncio.create_task(call)
    while not task.done():
        await asyncio.sleep(0.001)
        longest, last = max(longest, time.thread_time() - last), time.thread_time()
    await task
    return longest

async def main():
    return {
        "open": await held_by(agenerate("a", regex="[a-z]{2}", model=model, max_tokens=4)),
        "large type": await held_by(agenerate("a", schema=Large, model=model, max_tokens=30)),
        "open one": await held_by(shared()),
        "stream a large type": await held_by(streamed()),
    }

print(json.dumps(asyncio.run(main())))
"""
"""A folder and a type of 1,500 fields as they are; what the loop's own thread computes in one turn."""


def run(program: str, *arguments: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        capture_output=True, text=True, timeout=240, env=dict(os.environ, OMP_NUM_THREADS="1"), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("model", RUNS)
def test_first_use_from_several_threads_writes_what_one_writes(model: str) -> None:
    written = run(FROM_THREADS, model, json.dumps(SCHEMA), PROMPT)
    alone = tf.generate(PROMPT, schema=SCHEMA, model=model or None, max_tokens=60).text
    assert written == {"texts": [alone] * 4, "after": alone}


def test_a_loop_is_not_held_while_a_model_opens_or_a_type_is_read() -> None:
    held = run(IN_A_LOOP, BY_PATH)
    assert max(held.values()) < 1.5, held  # type: ignore[type-var]  # of 3 seconds; a busy machine holds it too


@pytest.mark.slow
def test_a_loop_computes_no_more_than_20_ms_in_a_turn() -> None:
    held = run(WORK_IN_A_LOOP, BY_PATH)
    assert max(held.values()) < 0.020, held  # type: ignore[type-var]  # of its processor: others may be busy


def test_what_is_opened_at_once_is_made_once() -> None:
    made: list[int] = []
    started = threading.Barrier(8)

    @opened_once(2)
    def make(key: int) -> list[int]:
        made.append(key)
        return [key]

    found: list[list[int]] = []

    def ask() -> None:
        started.wait()
        found.append(make(1))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1] and all(one is found[0] for one in found)
    make(2), make(1), make(3), make(1)
    assert made == [1, 2, 3]  # 2 was used least recently
    make(2)
    assert made == [1, 2, 3, 2]


def test_what_raises_is_tried_again() -> None:
    tries = iter([ModelError("not now"), None])

    @opened_once(1)
    def make() -> str:
        error = next(tries)
        if error is not None:
            raise error
        return "open"

    with pytest.raises(ModelError):
        make()
    assert make() == "open"


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("{folder}/absent.gguf", {}, "does not exist"),
        ("{folder}/notes.txt", {}, "is no GGUF file"),
        ("{folder}", {}, "give gguf_file=, one of several.*a.gguf, b.gguf"),
        ("{folder}", {"gguf_file": "c.gguf"}, "there is no file 'c.gguf'.*a.gguf, b.gguf"),
        ("{folder}/a.gguf", {}, "can't be opened"),
        ("{folder}/a.gguf", {"gguf_file": "b.gguf"}, "is a file already"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    tmp_path: Path, name: str, options: dict[str, str], said: str
) -> None:
    for one in ("a.gguf", "b.gguf", "notes.txt"):
        (tmp_path / one).write_bytes(b"no model")
    with pytest.raises((ModelError, OptionError), match=said):
        tf.Generator(name.format(folder=tmp_path), **options)


@pytest.mark.parametrize("package", ["gguf", "accelerate"])
def test_a_package_that_gguf_files_need_is_named(
    tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.gguf").write_bytes(b"no model")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"needs {package}.*tokenform\[gguf\]"):
        tf.Generator(str(tmp_path / "a.gguf"))


def test_narrow_numbers_are_widened_where_the_processor_has_no_arithmetic_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(WEIGHTS / "model", tmp_path / "half")
    model = LlamaForCausalLM.from_pretrained(tmp_path / "half", dtype=torch.bfloat16)
    model.save_pretrained(tmp_path / "half")
    folder = str(tmp_path / "half")
    monkeypatch.setattr(models, "computes", lambda _: False)
    with pytest.warns(UserWarning, match="does not compute in bfloat16.*runs in float32"):
        opened = models.open_model(folder, device="cpu")
    assert opened.model.dtype == torch.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert models.open_model(folder, device="cpu").model is opened.model  # said once
        assert models.open_model(folder, device="cpu", dtype=torch.bfloat16).model.dtype == torch.bfloat16
    shutil.copytree(tmp_path / "half", tmp_path / "again")
    monkeypatch.setattr(models, "computes", lambda _: True)
    assert models.open_model(str(tmp_path / "again"), device="cpu").model.dtype == torch.bfloat16
