"""What threads cost each other: misses side by side, and readers beside a thread that builds.

    python benchmarks/threads.py                # all of it
    python benchmarks/threads.py --seconds 1 --every 100   # to see that it runs

Purpose: a server asks one automaton from several threads, and one request must not hold the others.
 misses    masks a second of new states of one automaton, two threads over one
 known     microseconds that a thread waits for masks, edges and ends that are known, beside a thread that
           makes masks of about 100 ms each on the same automaton
 ordinary  milliseconds that a thread with an ordinary schema of its own waits for a token's mask and edge,
           both new, beside each hostile input, which is compiled, walked and asked for its distances
 alone     the same reader without anybody beside it: what the machine and the interpreter cost
Invariant: ways run in turns; waiting is wall time as the thread sees it, so other load of the machine counts;
a hostile input that held the reader up is met twice more and the shortest wait is told, as other load goes.
"""

from __future__ import annotations

import argparse
import random
import string
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import tokenform as tf
from suites.hostile_inputs import hostile_cases

LETTERS = string.ascii_lowercase
HARD = {"type": "string", "pattern": "^(?=(.*a.{9}b){3})(?=(.*c.{11}d){3})(?=(.*e.{10}f){3}).*$"}
ORDINARY = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "count": {"type": "integer"}, "tags": {"enum": ["a", "b"]}},
    "required": ["name"],
}
SECONDS = 0.05  # that nobody may be held up
STEPS = 5


def vocabulary(words: int) -> tf.Vocabulary:
    rng = random.Random(0)
    made = sorted({"".join(rng.choices(LETTERS, k=rng.randint(2, 6))) for _ in range(words)})
    tokens = [bytes([b]) for b in range(256)] + [w.encode() for w in made]
    return tf.Vocabulary([*tokens, b"</s>"], eos=[len(tokens)])


def quantile(waits: list[float], share: float) -> float:
    return sorted(waits)[min(len(waits) - 1, int(share * len(waits)))]


def make_masks(automaton: tf.TokenAutomaton, texts: list[bytes]) -> float:
    """Processor seconds of this thread for the masks of states that are new, one a text."""
    begin = time.thread_time()
    for text in texts:
        automaton.mask(automaton.step_bytes(automaton.start, text))
    return time.thread_time() - begin


def timed(call: Callable[[Any], Any], parts: list[Any]) -> tuple[float, list[Any]]:
    """Seconds by the wall of one thread a part, and what each gave."""
    begin = time.perf_counter()
    with ThreadPoolExecutor(len(parts)) as pool:
        given = list(pool.map(call, parts))
    return time.perf_counter() - begin, given


def machine() -> float:
    """Speed of two threads over that of one, by the wall, where neither needs memory, a lock or the
    interpreter: what other programs leave of the machine."""
    block = bytes(1 << 20)

    def sums(count: int) -> None:
        for _ in range(count):
            zlib.crc32(block)

    return timed(sums, [200])[0] / timed(sums, [100, 100])[0]


def misses(vocab: tf.Vocabulary, rounds: int) -> dict[str, float]:
    """Speed of two threads over that of one, medians of some rounds: on one automaton by the wall, and by the
    processor time of the thread that needs more, which is what two free processors would give; on an
    automaton each, by the wall; and of the machine."""
    rng, found = random.Random(3), defaultdict[str, list[float]](list)
    schema = {"type": "array", "items": {"type": "string", "maxLength": 30}, "uniqueItems": True}

    def text() -> bytes:
        return ('["' + '", "'.join("".join(rng.choices(LETTERS, k=7)) for _ in range(6)) + '", "').encode()

    def fresh() -> Any:
        automaton = tf.json_schema(schema).core.compile(vocab)
        make_masks(automaton, [text() for _ in range(100)])
        return automaton

    def work(automaton: Any, count: int) -> tuple[Any, list[bytes]]:
        return automaton, [text() for _ in range(count)]

    def make(part: tuple[Any, list[bytes]]) -> float:
        return make_masks(*part)

    for _ in range(rounds):
        both = fresh()
        alone, used = timed(make, [work(fresh(), 600)])
        shared, each = timed(make, [work(both, 300), work(both, 300)])
        apart, _ = timed(make, [work(fresh(), 300), work(fresh(), 300)])
        found["wall"].append(alone / shared)
        found["processor"].append(used[0] / max(each))
        found["apart"].append(alone / apart)
        found["machine"].append(machine())
    return {name: quantile(ratios, 0.5) for name, ratios in found.items()}


def beside(build: Callable[[], None], read: Callable[[], None], seconds: float = 0) -> list[float]:
    """Waits of `read`, in seconds, while another thread builds: or once where `seconds` is 0."""
    ended = threading.Event()

    def loop() -> None:
        build()
        while seconds and not ended.is_set():
            build()

    other = threading.Thread(target=loop)
    other.start()
    waits, end = list[float](), time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end or (not seconds and other.is_alive()):
        read()
        waits.append(time.perf_counter() - begin)
    ended.set()
    other.join()
    return waits or [0.0]


def reader(automaton: tf.TokenAutomaton, text: bytes) -> Callable[[], None]:
    """Walks a text, all masks and edges of which are known."""
    row = np.zeros((1, automaton.mask_words), np.uint32)

    def read() -> None:
        state = automaton.start
        for byte in text:
            automaton.fill_masks([state], row)
            automaton.is_accepting(state)
            state = automaton.advance(state, byte)

    read()
    return read


def maker(automaton: tf.TokenAutomaton, text: bytes) -> Callable[[], None]:
    """One token a call, over the text again and again, its masks and edges made anew each time."""
    row, position, state = np.zeros((1, automaton.mask_words), np.uint32), 0, automaton.start

    def read() -> None:
        nonlocal position, state
        automaton.fill_masks([state], row)
        automaton.is_accepting(state)
        state = automaton.advance(state, text[position])
        position = (position + 1) % len(text)
        if not position:
            automaton.clear()
            state = automaton.start

    return read


def known(vocab: tf.Vocabulary, seconds: float) -> tuple[list[float], list[float]]:
    """Waits of a reader of known states, and how long the masks beside it took."""
    automaton = tf.json_schema(HARD).compile(vocab, limits=tf.engine.Limits(work=10**12, memory=1 << 30))
    read, took, rng = reader(automaton, b'"abcabc'), list[float](), random.Random(1)

    def build() -> None:
        text = "".join(rng.choices("abcdef", k=12)).encode()
        state = automaton.step_bytes(automaton.start, b'"' + text)
        begin = time.perf_counter()
        automaton.mask(state)
        took.append(time.perf_counter() - begin)

    return beside(build, read, seconds), took


def meet(make: Callable[[], Any], vocab: tf.Vocabulary) -> None:
    """One hostile input: compiled, walked a few tokens, asked how far its end is."""
    rng = random.Random(2)
    try:
        automaton = make().compile(vocab)
        state = automaton.start
        for _ in range(STEPS):
            allowed = automaton.allowed_tokens(state)
            if automaton.is_finished(state) or not allowed.size:
                break
            state = automaton.advance(state, int(rng.choice(allowed)))
        automaton.mask_within(state, 100)
        automaton.distance(state)
    except tf.TokenformError:
        pass


def ordinary(vocab: tf.Vocabulary, every: int) -> list[tuple[float, str]]:
    """The longest wait beside each hostile input, in seconds."""
    automaton = tf.json_schema(ORDINARY).compile(vocab)
    read = maker(automaton, b'{"name": "Ada", "count": 12}')
    longest = []
    for name, make in list(hostile_cases().items())[::every]:
        wait = max(beside(partial(meet, make, vocab), read))
        for _ in range(2):
            if wait > SECONDS:
                wait = min(wait, max(beside(partial(meet, make, vocab), read)))
        longest.append((wait, name))
    return sorted(longest, reverse=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each reader")
    parser.add_argument("--rounds", type=int, default=5, help="of the misses side by side")
    parser.add_argument("--every", type=int, default=1, help="meet one hostile input in so many")
    options = parser.parse_args()
    vocab = vocabulary(60_000)
    speed = misses(vocab, options.rounds)
    print(
        f"misses: two threads make {speed['wall']:.2f} times the masks of one; {speed['processor']:.2f} by "
        f"processor time; with an automaton each {speed['apart']:.2f}; two threads of check sums "
        f"{speed['machine']:.2f}"
    )
    read = reader(tf.json_schema(HARD).compile(vocab), b'"abcabc')
    waits, took = known(vocab, options.seconds)
    alone = beside(lambda: time.sleep(0.1), read, options.seconds)
    for name, some in (("known", waits), ("alone", alone)):
        p50, p99, worst = (quantile(some, share) * 1e6 for share in (0.5, 0.99, 1.0))
        print(
            f"{name}: {len(some)} reads of 7 tokens, p50 {p50:.1f} us, p99 {p99:.1f} us, worst {worst:.0f} us"
        )
    print(f"  beside {len(took)} masks of {quantile(took, 0.5) * 1e3:.0f} ms each (median)", flush=True)
    longest = ordinary(vocab, options.every)
    late = [(wait, name) for wait, name in longest if wait > SECONDS]
    p50, p99 = (quantile([wait for wait, _ in longest], share) * 1e3 for share in (0.5, 0.99))
    print(
        f"ordinary: longest wait for a token beside each of {len(longest)} hostile inputs: median {p50:.2f}"
    )
    print(f"  ms, p99 {p99:.2f}, worst {longest[0][0] * 1e3:.1f} ({longest[0][1]}); over 50 ms: {len(late)}")
    for wait, name in late[:20]:
        print(f"  {wait * 1e3:.0f} ms {name}")


if __name__ == "__main__":
    main()
