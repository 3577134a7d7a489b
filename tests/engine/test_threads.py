"""One automaton in many threads, and masks written into others' memory.

Each thread walks texts in an order of its own, so that states, masks and edges are built and read at the same
time; every row is compared with that of an automaton that one thread alone has walked.
"""

from __future__ import annotations

import contextlib
import json
import random
import string
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest

import tokenform as tf
from tokenform import _core
from tokenform.errors import TokenRejected
from tokenform.frontends.json_text import loads

THREADS = 8
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 12},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{1,5}$"},
        "size": {"enum": ["small", "medium", "large"]},
        "items": {"type": "array", "items": {"type": ["integer", "null", "string"]}},
    },
    "required": ["name"],
    "additionalProperties": {"type": "number"},
}
DOCUMENTS = [
    {"name": "Ada", "code": "AB-12", "size": "medium", "items": [1, None, "two", 33]},
    {"name": "Grace Hopper", "size": "large", "height": 1.5, "width": -3e2},
    {"name": "日本語 é", "items": [], "other": 0},
    {"name": 'q"uo\\te', "code": "ZZ-99999", "a": 1, "b": 2, "c": 3},
]


def walked(automaton: tf.TokenAutomaton, tokens: list[int]) -> list[int]:
    """The states along a text."""
    states = [automaton.start]
    for token in tokens:
        states.append(automaton.advance(states[-1], token))
    return states


@pytest.fixture(scope="module")
def texts(tekken: tf.Vocabulary) -> list[list[int]]:
    """The documents' tokens: as the vocabulary writes them greedily, and cut at random."""
    rng, found = random.Random(5), []
    for document in DOCUMENTS:
        text = json.dumps(document, ensure_ascii=False).encode()
        found.append(tekken.greedy(text) or [])
        for _ in range(3):
            tokens, at = [], 0
            while at < len(text):
                piece = text[at : at + rng.randint(1, 4)]
                tokens += tekken.greedy(piece) or []
                at += len(piece)
            found.append(tokens)
    return found


def test_threads_that_keep_missing_get_builders_of_their_own(tekken: tf.Vocabulary) -> None:
    """Texts that go from one builder to another and back are read as one reads them."""
    grammar = tf.json_schema({"type": "object", "additionalProperties": {"type": "integer"}})
    shared = grammar.core.compile(tekken, tf.engine.Limits(memory=1 << 22))
    barrier, wrong = threading.Barrier(4), list[Any]()

    def write(worker: int) -> None:
        rng = random.Random(worker)
        alone = grammar.core.compile(tekken)
        barrier.wait()
        for number in range(60):
            known = number % 3  # every third text is everybody's
            choose = random.Random(number) if known == 0 else rng
            value = {
                "".join(choose.choices(string.ascii_lowercase, k=5)): choose.randrange(10**6)
                for _ in range(5)
            }
            ours, theirs = shared.start, alone.start
            for token in tekken.greedy(json.dumps(value).encode()) or []:
                if not np.array_equal(shared.mask(ours), alone.mask(theirs)):
                    wrong.append((value, token))
                before, ours, theirs = ours, shared.advance(ours, token), alone.advance(theirs, token)
                # equal, or made again where memory was let go in between: it allows the same
                again = shared.advance(before, token)
                if again != ours and not np.array_equal(shared.mask(again), shared.mask(ours)):
                    wrong.append((value, token))
            if not shared.is_accepting(ours) or shared.distance(ours) != 0:
                wrong.append(value)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    stats = shared.stats()
    assert stats["lanes"] > 1 and stats["ended_by_errors"] == 0


def test_eight_threads_get_what_one_gets(tekken: tf.Vocabulary, texts: list[list[int]]) -> None:
    alone = tf.json_schema(SCHEMA).core.compile(tekken)
    want = [[alone.mask(s).copy() for s in walked(alone, tokens)] for tokens in texts]
    refused = [next(t for t in range(1000, tekken.size) if not alone.allows(alone.start, t))] * len(texts)
    shared = tf.json_schema(SCHEMA).core.compile(tekken)
    barrier = threading.Barrier(THREADS)

    def hammer(worker: int) -> int:
        rng, compared = random.Random(worker), 0
        row = np.zeros((1, shared.mask_words), np.uint32)
        barrier.wait()
        for number in rng.sample(range(len(texts)), len(texts)):
            tokens, rows = texts[number], want[number]
            state = shared.start
            for step, token in enumerate(tokens):
                shared.fill_masks([state], row)
                assert np.array_equal(row[0], rows[step]), (number, step)
                assert shared.allows(state, token)
                state = shared.advance(state, token)
                compared += 1
            with pytest.raises(TokenRejected):
                shared.advance(shared.start, refused[number])
            states = walked(shared, tokens)
            batch = np.zeros((len(states), shared.mask_words), np.uint32)
            shared.fill_masks(states, batch, threads=2)
            assert np.array_equal(batch, np.stack(rows))
            assert shared.is_accepting(states[-1]) and shared.distance(states[-1]) == 0
        return compared

    with ThreadPoolExecutor(THREADS) as pool:
        counts = list(pool.map(hammer, range(THREADS)))
    assert counts == [sum(map(len, texts))] * THREADS


def test_automata_of_one_vocabulary_in_threads(tekken: tf.Vocabulary) -> None:
    """Automata share the table of lexical masks: built at the same time, they are as if built alone."""
    schemas = [{"type": "string", "minLength": i, "maxLength": 7 + i} for i in range(THREADS)]

    def masks(schema: dict[str, Any]) -> np.ndarray:
        automaton = tf.json_schema(schema).compile(tekken)
        states = [automaton.step_bytes(automaton.start, b'"abcdefghijklmnopq'[:n]) for n in range(1, 8)]
        return np.stack([automaton.mask(s) for s in states])

    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(masks, schemas))
    for schema, rows in zip(schemas, together, strict=True):
        assert np.array_equal(rows, masks(schema))


@pytest.mark.parametrize("kind", ["uint32", "int32", "torch", "pinned", "part"])
def test_rows_are_written_in_place(kind: str, tekken: tf.Vocabulary) -> None:
    """The memory that was given is the memory that is written, and nothing beside it."""
    automaton = tf.json_schema(SCHEMA).core.compile(tekken)
    states = [automaton.start, automaton.step_bytes(automaton.start, b'{"name": "x')]
    want = np.stack([automaton.mask(s) for s in states])
    if kind in ("torch", "pinned"):
        torch = pytest.importorskip("torch")
        if kind == "pinned" and not torch.cuda.is_available():
            pytest.skip("pinned memory needs a GPU's driver")
        out = torch.zeros(want.shape, dtype=torch.int32, pin_memory=kind == "pinned")
        address = out.data_ptr()
        view = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint32 * want.size).from_address(address))
    else:
        whole = np.full((4, want.shape[1]), 7, dtype=np.int32 if kind == "int32" else np.uint32)
        out = whole[1:3] if kind == "part" else whole[:2]
        view = whole.view(np.uint32)[1 if kind == "part" else 0 :][:2].reshape(-1)
    automaton.fill_masks(states, out)
    assert np.array_equal(view.reshape(want.shape), want)
    if kind in ("uint32", "int32", "part"):
        beside = [0, 3] if kind == "part" else [2, 3]
        assert (whole[beside] == 7).all()


@pytest.mark.parametrize("rows", [1, 3])  # a single row goes another way than a batch
def test_other_threads_run_while_masks_are_made(rows: int, tekken: tf.Vocabulary) -> None:
    """`fill_masks` lets go of the interpreter.

    Nothing else does here: the interval after which Python switches threads by itself is made endless.
    Whether the other thread is quick enough is for the system to say, hence the attempts; if the lock were
    held, all of them would fail.
    """
    interval = sys.getswitchinterval()

    def other_was_first(letter: str) -> bool:
        pattern = f"^(?=.*[0-9])(?=.*{letter})(?=.*[A-Z])[!-~]{{8,40}}$"
        automaton = tf.json_schema({"type": "string", "pattern": pattern}).compile(tekken)
        states = [automaton.step_bytes(automaton.start, b'"' + b"5Q" * n) for n in range(1, rows + 1)]
        out = np.zeros((rows, automaton.mask_words), np.uint32)
        order: list[str] = []
        gate, waiting = threading.Lock(), threading.Event()

        def other() -> None:
            waiting.set()
            with gate:
                order.append("other")

        with gate:
            thread = threading.Thread(target=other)
            thread.start()
            waiting.wait()
            time.sleep(0.01)
            sys.setswitchinterval(1000)
        automaton.fill_masks(states, out)
        order.append("this")
        sys.setswitchinterval(interval)
        thread.join()
        return order[0] == "other"

    try:
        assert any(other_was_first(letter) for letter in string.ascii_letters)
    finally:
        sys.setswitchinterval(interval)


LONG: dict[str, Callable[[], Any]] = {
    "a list": partial(_core.json_text, [0] * 1_000_000),
    "an object": partial(_core.json_text, {str(i): None for i in range(500_000)}),
    "choices": partial(_core.choice, [str(i) for i in range(500_000)]),
    "a text that was written": partial(loads, json.dumps([{"a": i} for i in range(300_000)])),
    "words": partial(tf.substring, "ab " * 100_000, by="word"),
}


@pytest.mark.parametrize("name", LONG)
def test_other_threads_have_their_turn_while_a_long_value_is_taken(name: str) -> None:
    """Whatever takes long counts on: none of the attempts is a single step for the interpreter."""
    turns, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            turns[0] += 1

    def others_ran() -> bool:
        before = turns[0]
        LONG[name]()
        return turns[0] > before

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=count)
    thread.start()
    sys.setswitchinterval(0.001)
    try:
        assert all(others_ran() for _ in range(5))
    finally:
        sys.setswitchinterval(interval)
        done.set()
        thread.join()


def test_an_object_that_another_thread_changes_is_an_error_and_no_panic() -> None:
    inner = {str(i): None for i in range(200_000)}
    value: dict[str, Any] = {"a": inner, "b": 1}
    changed = threading.Event()

    def change() -> None:
        while not changed.is_set():
            value["c"] = value.pop("c", 0) + 1
            inner.pop("7", None)
            inner["7"] = None

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(20):
            with contextlib.suppress(RuntimeError):
                assert isinstance(_core.json_text(value), str)
    finally:
        changed.set()
        thread.join()
