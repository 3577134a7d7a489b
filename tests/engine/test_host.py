"""The engine inside an interpreter: its end, its children, its signals, readers beside a builder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import tokenform as tf

PRELUDE = """
import threading, time
import tokenform as tf

TOKENS = [bytes([b]) for b in range(256)] + [b"</s>"]
VOCABULARY = tf.Vocabulary(TOKENS, eos=[256])
PATTERN = "^(?=(.*a.{9}b){3})(?=(.*c.{11}d){3})(?=(.*e.{10}f){3}).*$"
HARD = tf.json_schema({"type": "string", "pattern": PATTERN})

def work(automaton):
    state = automaton.step_bytes(automaton.start, b'"')
    for byte in b"abcdefghijklmnopqrstuvwxyz" * 40:
        automaton.mask(state)
        state = automaton.advance(state, byte)
"""


def run(code: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    program = PRELUDE + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=timeout)


def test_the_interpreter_ends_while_threads_are_inside() -> None:
    done = run(
        """
        limits = tf.engine.Limits(work=10**12, memory=1 << 30)
        shared = HARD.compile(VOCABULARY, limits=limits)
        for automaton in [shared] * 3 + [HARD.core.compile(VOCABULARY, limits) for _ in range(2)]:
            loop = lambda a=automaton: [work(a) or a.clear() for _ in range(999)]
            threading.Thread(target=loop, daemon=True).start()
        time.sleep(0.5)
        print("ended")
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_the_engine_serves_until_the_very_end() -> None:
    """What runs at the interpreter's exit may still ask."""
    done = run(
        """
        import atexit
        automaton = tf.regex("a+").compile(VOCABULARY)
        atexit.register(lambda: print(automaton.allowed_tokens(automaton.start).tolist()))
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[97]\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_children_of_a_process_whose_threads_work() -> None:
    """A child uses what its parent's threads had in their hands when it was forked."""
    done = run(
        """
        import os
        limits = tf.engine.Limits(work=10**12)
        automata = [HARD.core.compile(VOCABULARY, limits) for _ in range(3)]
        held = [a.step_bytes(a.start, b'"ab') for a in automata]
        want = automata[0].oracle(held[0])
        stop = False
        def loop(a):
            while not stop:
                work(a)
                a.clear()
        threads = [threading.Thread(target=loop, args=(a,)) for a in automata[:2] * 2]
        for t in threads:
            t.start()
        failed = 0
        for _ in range(25):
            child = os.fork()
            if child == 0:
                good = all(a.allowed_tokens(s).tolist() == want for a, s in zip(automata, held))
                other = tf.regex("[0-9]+").compile(VOCABULARY)
                good &= other.allows(other.start, 48)
                os._exit(0 if good else 1)
            end = time.monotonic() + 10
            status = None
            while time.monotonic() < end:
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid:
                    break
                time.sleep(0.002)
            else:
                os.kill(child, 9)
                os.waitpid(child, 0)
                status = -1
            failed += status != 0
        stop = True
        for t in threads:
            t.join()
        print("failed", failed)
        """,
        timeout=150,
    )
    assert (done.stdout, done.returncode) == ("failed 0\n", 0), done.stderr


def test_an_interrupt_ends_a_call() -> None:
    """Ctrl-C ends a call that builds, and one that waits for another thread; the automaton goes on."""
    done = run(
        """
        import os
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
        limits = tf.engine.Limits(work=10**13, memory=1 << 40)
        text = b"a" * 300_000_000
        for other in (False, True):
            automaton = tf.regex("[a-z]*").core.compile(VOCABULARY, limits)
            ask = lambda: automaton.matches(text)
            if other:
                threading.Thread(target=ask, daemon=True).start()
                time.sleep(0.2)
            sent = []
            def send():
                time.sleep(0.5)
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            threading.Thread(target=send).start()
            try:
                for _ in range(50):  # seconds, on any machine
                    ask()
                print("done too soon")
            except KeyboardInterrupt:
                late = time.monotonic() - sent[0]
                print("ended" if late < 1.0 else f"ended after {late}")
        again = tf.regex("ab").compile(VOCABULARY)
        print(again.allowed_tokens(again.start).tolist())
        """
    )
    assert done.stdout == "ended\nended\n[97]\n", done.stderr


def test_an_interrupt_ends_a_call_that_reads_a_text_again() -> None:
    """However many portions that takes: what was let go is read for seconds here."""
    done = run(
        """
        import os
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
        vocabulary = tf.Vocabulary([*(bytes([b]) for b in range(256)), b"01234", b""], eos=[257])
        automaton = tf.gbnf('root ::= ([^a]* [^b]* [^c]*){1,40} "z"').compile(vocabulary)
        state = automaton.start
        for _ in range(60):
            state = automaton.advance(state, 256)
        sent = []
        def send():
            time.sleep(0.5)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=send).start()
        try:
            while True:
                automaton.clear()
                automaton.allows(state, ord("z"))
        except KeyboardInterrupt:
            late = time.monotonic() - sent[0]
            print("ended" if late < 1.0 else f"ended after {late}")
        print(automaton.allows(automaton.start, ord("x")))
        """
    )
    assert done.stdout == "ended\nTrue\n", done.stderr


def test_an_interrupt_ends_a_batch() -> None:
    """Ctrl-C ends the rows that other threads build too, and those that nobody has begun."""
    done = run(
        """
        import os
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
        import numpy as np
        limits = tf.engine.Limits(work=10**13, memory=1 << 40)
        out = np.zeros((12, 9), np.uint32)
        for threads in (1, 2, 12):
            automata = [HARD.core.compile(VOCABULARY, limits) for _ in range(12)]
            texts = [b'"' + bytes([97 + i]) + b"abcdef" * 400 for i in range(12)]
            sent = []
            def send():
                time.sleep(0.5)
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            threading.Thread(target=send).start()
            try:
                while True:
                    states = [a.start for a in automata]
                    for byte in texts[0]:
                        states = tf.engine.advance(states, [byte] * 12, threads=threads, errors="return")
                        tf.engine.fill_masks(states, out, threads=threads, errors="return")
            except KeyboardInterrupt:
                late = time.monotonic() - sent[0]
                print("ended" if late < 1.0 else f"ended after {late}")
        print(np.array_equal(automata[0].mask(automata[0].start), automata[1].mask(automata[1].start)))
        """
    )
    assert done.stdout == "ended\nended\nended\nTrue\n", done.stderr


def test_known_states_are_read_beside_a_builder() -> None:
    """While one thread builds, another reads what is known and is never kept waiting for it."""
    tokens = [bytes([b]) for b in range(256)] + [b"</s>"]
    vocabulary = tf.Vocabulary(tokens, eos=[256])
    automaton = tf.json_schema({"type": "string"}).core.compile(vocabulary, tf.engine.Limits(work=10**10))
    text = b'"' + b"a" * 100_000_000
    states = [automaton.start]
    for byte in b'"abab':
        states.append(automaton.advance(states[-1], byte))
    want = [automaton.mask(s).copy() for s in states]
    for s in states:
        automaton.is_accepting(s)
    started = threading.Event()

    def build() -> None:
        started.set()
        automaton.matches(text)

    builder = threading.Thread(target=build)
    builder.start()
    started.wait()
    time.sleep(0.05)
    row, reads = np.zeros((1, automaton.mask_words), np.uint32), 0
    while builder.is_alive():
        for at, state in enumerate(states):
            automaton.fill_masks([state], row)
            assert np.array_equal(row[0], want[at])
            assert not automaton.is_accepting(state)
            if at + 1 < len(states):
                assert automaton.advance(state, b'"abab'[at]) == states[at + 1]
            reads += 1
    builder.join()
    # a builder that is waited for would leave time for none but the first
    assert reads > 100


def test_signals_reach_the_main_thread_alone() -> None:
    """A signal that comes while another thread builds does not end that thread's call."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals are the main thread's")
    tokens = [bytes([b]) for b in range(256)] + [b"</s>"]
    automaton = tf.regex("(a|b)*a(a|b){11}").compile(tf.Vocabulary(tokens, eos=[256]))
    answers: list[object] = []
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        thread = threading.Thread(target=lambda: answers.append(automaton.distance(automaton.start)))
        thread.start()
        os.kill(os.getpid(), signal.SIGALRM)
        thread.join()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert answers == [12]
