"""Collections of cyclic garbage while a grammar is read: none in midstream, and afterwards as before."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import tokenform as tf
from tokenform.errors import InvalidGrammar
from tokenform.frontends.garbage import collected_later
from tokenform.frontends.lark_reader import read_lark

RULES = "start: r0\n" + "".join(f'r{i}: "a" r{i + 1} | "b"\n' for i in range(400)) + 'r400: "c"\n'


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """Generations that were collected, while a test runs with collections on."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.collect()
    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)


def test_no_collection_while_a_grammar_is_read(collections: list[int]) -> None:
    before = len(gc.get_objects())
    read_lark(RULES)
    # what lark made is gone by its counts: those that follow find little
    assert len([generation for generation in collections if generation > 0]) <= 1
    assert gc.isenabled()
    gc.collect()
    assert len(gc.get_objects()) - before < 20_000


def test_no_collection_while_many_tools_are_put_together(collections: list[int]) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    given = [{"name": f"tool_{i}", "parameters": schema} for i in range(500)]
    collections.clear()
    tf.tools(given, format="hermes")
    assert len([generation for generation in collections if generation > 0]) <= 1
    assert gc.isenabled()


def test_they_are_as_they_were_after_errors_and_with_several_readers() -> None:
    with pytest.raises(InvalidGrammar):
        tf.lark("start: (")
    assert gc.isenabled()
    gc.disable()
    try:
        read_lark(RULES)
        assert not gc.isenabled()
    finally:
        gc.enable()
    inside = threading.Barrier(3)

    def reads(_: int) -> bool:
        with collected_later():
            inside.wait(10)
            off = not gc.isenabled()
            inside.wait(10)
        return off

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(reads, range(3))) == [True] * 3
    assert gc.isenabled()


SERVING = """
import gc, weakref
from tokenform.frontends.garbage import serve_from_here

class Node: pass

serve_from_here()
assert gc.get_freeze_count() > 1000 and gc.isenabled()
seen = []
for _ in range(200_000):
    one = Node()
    one.itself = one
    if len(seen) < 10:
        seen.append(weakref.ref(one))
print(sum(one() is not None for one in seen))
"""


def test_a_serving_process_still_collects_what_it_makes() -> None:
    found = subprocess.run([sys.executable, "-c", SERVING], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "0"


@pytest.mark.parametrize("read", [tf.lark, tf.gbnf])
@pytest.mark.parametrize("text", [b'root ::= "a"', 5, None])
def test_grammars_are_read_from_str(read, text):
    with pytest.raises(InvalidGrammar, match=f"the text is a str, not {type(text).__name__}"):
        read(text)
