"""Continuous batching: texts of many calls run together, and each is the one that is written alone."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import tokenform as tf
from tokenform.decoding.scheduler import Piece, Scheduler
from tokenform.decoding.speculative.targets import Penalties
from tokenform.errors import BudgetTooSmall, Busy, OptionError

PARCEL = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "paid": {"type": "boolean"}, "to": {"type": "string"}},
    "required": ["number", "paid", "to"],
    "additionalProperties": False,
}
GRAMMARS = [PARCEL, tf.regex("[a-z]{3,9}( [a-z]{2,5})?"), tf.choice(["new", "paid", "sent back"]), None]


@pytest.fixture(scope="module")
def generator():
    return tf.Generator(drafter=None)


def prompts(count: int) -> list[str]:
    return [f"The parcel {i} goes to Ada, and it {'is' if i % 2 else 'is not'} paid." for i in range(count)]


@pytest.mark.parametrize("drafter", ["auto", None])
def test_texts_are_those_that_are_written_alone(drafter):
    generator = tf.Generator(drafter=drafter)
    asked = [
        (prompt, GRAMMARS[i % 4], i, tf.Local(temperature=(0.0, 0.7, 1.0)[i % 3]))
        for i, prompt in enumerate(prompts(14))
    ]
    alone = [
        generator.sample(prompt, grammar, seed=seed, sampler=sampler, max_tokens=40, n=2)
        for prompt, grammar, seed, sampler in asked
    ]
    with Scheduler(generator, batch_size=5) as scheduler:
        jobs = []
        for prompt, grammar, seed, sampler in asked:
            jobs.append(scheduler.submit(prompt, grammar, seed=seed, sampler=sampler, max_tokens=40, n=2))
            time.sleep(0.003)  # they join a running batch
        together = [job.result(60) for job in jobs]
    assert [[one.text for one in n] for n in together] == [[one.text for one in n] for n in alone]
    assert [[one.value for one in n] for n in together] == [[one.value for one in n] for n in alone]


def test_pieces_joined_are_the_text(generator):
    heard: list[Piece] = []
    with Scheduler(generator) as scheduler:
        job = scheduler.submit(
            "Grüße an Ada", tf.regex("[äöüß]{4,8}"), n=3, seed=1, alternatives=2, listener=heard.append,
            sampler=tf.Local(),
        )  # fmt: skip
        results = job.result(60)
    for number, result in enumerate(results):
        mine = [piece for piece in heard if piece.number == number]
        assert "".join(piece.text for piece in mine) == result.text
        assert [token for piece in mine for token in piece.tokens] == result.tokens
        assert [one for piece in mine for one in piece.logprobs] == pytest.approx(result.token_logprobs)
        assert mine[-1].result is result and all(piece.result is None for piece in mine[:-1])
        assert len(result.likeliest) == len(result.tokens)
        for token, logprob, likeliest in zip(result.tokens, result.token_logprobs, result.likeliest):
            assert len(likeliest) == 2 and likeliest[0][1] >= max(likeliest[1][1], logprob - 1e-5)
            assert dict(likeliest).get(token, logprob) == pytest.approx(logprob, abs=1e-5)


class Told:
    """An automaton that notes in which thread its masks are made."""

    def __init__(self, automaton, threads: list[str]) -> None:
        self._automaton, self._threads = automaton, threads

    def __getattr__(self, name):
        return getattr(self._automaton, name)

    def mask(self, state):
        self._threads.append(threading.current_thread().name)
        return self._automaton.mask(state)


def test_the_first_mask_holds_up_no_other_text(generator, monkeypatch):
    threads: list[str] = []
    rows = generator.rows

    def told(*arguments, **named):
        made = rows(*arguments, **named)
        for row in made:
            row.automaton = Told(row.automaton, threads)
        return made

    monkeypatch.setattr(generator, "rows", told)
    with Scheduler(generator) as scheduler:
        job = scheduler.submit("a", tf.regex("[b-d]{3}"), n=2, seed=1, max_tokens=8)
        assert threads[0] == threading.current_thread().name
        assert all(len(one.text) == 3 for one in job.result(60))
    assert "tokenform-batch" in threads


def test_stop_ends_free_text_before_it(generator):
    with Scheduler(generator) as scheduler:
        job = scheduler.submit("Ada", seed=3, sampler=tf.Local(), stop=["e"], max_tokens=60)
        (result,) = job.result(60)
    assert "e" not in result.text
    assert (
        result.text == generator.sample("Ada", seed=3, sampler=tf.Local(), stop=["e"], max_tokens=60)[0].text
    )


def test_each_has_its_own_penalties_and_transforms(generator):
    def no_digit_7(_, scores):
        scores[generator.vocabulary.tokens.index(b"7")] = float("-inf")
        return scores

    digits = tf.regex("[0-9]{12}")
    with Scheduler(generator) as scheduler:
        plain = scheduler.submit("7", digits, seed=0)
        fewer = scheduler.submit("7", digits, seed=0, penalties=Penalties(frequency=9.0))
        other = scheduler.submit("7777777", digits, seed=0, transforms=[no_digit_7])
        texts = [job.result(60)[0] for job in (plain, fewer, other)]
    assert len(set(texts[1].tokens)) > len(set(texts[0].tokens)) or len(set(texts[1].tokens)) == 12
    assert generator.vocabulary.tokens.index(b"7") not in texts[2].tokens


def test_a_failing_call_costs_itself(generator):
    def broken(_, scores):
        raise ZeroDivisionError("broken")

    def deaf(piece):
        raise KeyError("deaf")

    with Scheduler(generator, batch_size=4) as scheduler:
        with pytest.raises(BudgetTooSmall):
            scheduler.submit("a", tf.regex("[ab]{90}"), max_tokens=2)
        good = [scheduler.submit(p, PARCEL, seed=0) for p in prompts(3)]
        bad = scheduler.submit("b", tf.regex("[a-z]{4}"), transforms=[broken])
        unheard = scheduler.submit("c", tf.regex("[a-z]{4}"), listener=deaf)
        assert [job.result(60)[0].value["to"] for job in good]
        with pytest.raises(tf.TokenformError, match="ZeroDivisionError"):
            bad.result(60)
        with pytest.raises(KeyError):
            unheard.result(60)
        assert scheduler.submit("d", tf.regex("[a-z]{4}")).result(60)


@pytest.mark.parametrize("part", ["decoder.step", "_join", "_tell"])
def test_a_broken_turn_fails_what_runs_and_nothing_later(generator, monkeypatch, part):
    scheduler = Scheduler(generator, batch_size=4)
    place, name = scheduler._batch, part
    if part == "decoder.step":
        place, name = scheduler._batch.decoder, "step"
    whole, broken = getattr(place, name), [True]

    def once(*arguments):
        return 1 / 0 if broken and broken.pop() else whole(*arguments)

    monkeypatch.setattr(place, name, once)
    failed = scheduler.submit("a", tf.regex("[a-z]{4}"))
    with pytest.raises(tf.TokenformError, match="ZeroDivisionError"):
        failed.result(60)
    assert len(scheduler.submit("a", tf.regex("[a-z]{4}")).result(60)[0].text) == 4
    scheduler.close()


@pytest.mark.parametrize("sampler", [None, tf.CARS()])
def test_a_thread_that_can_not_start_is_said_and_the_next_call_runs(generator, monkeypatch, sampler):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    with Scheduler(generator) as scheduler:
        with monkeypatch.context() as without:
            without.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="new thread"):
                scheduler.submit("a", tf.regex("[ab]{3}"), sampler=sampler)
        load = scheduler.load
        assert (load.running, load.waiting, load.jobs) == (0, 0, 0)
        assert len(scheduler.submit("a", tf.regex("[ab]{3}"), sampler=sampler).result(60)[0].text) == 3


def test_a_turn_that_fails_without_memory_for_another_is_made_up_for(generator, monkeypatch):
    """No new cache either: the next text has one, or its error."""

    def fail(*_, **__):
        raise MemoryError

    with Scheduler(generator) as scheduler:
        with monkeypatch.context() as without:
            without.setattr(scheduler._batch.decoder, "steps", fail)
            without.setattr(scheduler._batch, "_new_decoder", fail)
            for _ in range(2):
                with pytest.raises(tf.TokenformError):
                    scheduler.submit("a", tf.regex("[ab]{3}")).result(60)
        assert len(scheduler.submit("a", tf.regex("[ab]{3}")).result(60)[0].text) == 3


def test_cancelled_texts_leave_and_the_others_go_on(generator):
    with Scheduler(generator, batch_size=3) as scheduler:
        begun = threading.Event()
        long = [
            scheduler.submit(p, tf.regex("[a-z ]{400}"), max_tokens=600, listener=lambda _: begun.set())
            for p in prompts(5)
        ]
        short = scheduler.submit("a", tf.regex("[a-z]{4}"))
        assert begun.wait(60)
        assert all(job.cancel() for job in long)
        assert len(short.result(60)[0].text) == 4
        assert scheduler._batch.decoder.active == scheduler.load.running == scheduler.load.waiting == 0
        assert not long[0].cancel() or long[0].future.cancelled()


def test_owners_take_turns(generator):
    ended: list[str] = []
    with Scheduler(generator, batch_size=1) as scheduler:
        jobs = [scheduler.submit("a", tf.regex("[a-z]{30}"), owner="many") for _ in range(6)]
        jobs.append(scheduler.submit("a", tf.regex("[a-z]{3}"), owner="one"))
        for name, job in zip(["many"] * 6 + ["one"], jobs):
            job.future.add_done_callback(lambda _, name=name: ended.append(name))
        for job in jobs:
            job.result(60)
    assert ended.index("one") <= 2


def test_too_many_are_refused(generator):
    scheduler = Scheduler(generator, batch_size=1, waiting=2)
    jobs, refused = [], []
    for _ in range(8):
        try:
            jobs.append(scheduler.submit("a", tf.regex("[a-z]{300}"), max_tokens=400))
        except Busy as error:
            refused.append(error)
    assert len(jobs) in (3, 4) and all(error.waiting >= 2 for error in refused)
    with pytest.raises(Busy):
        scheduler.submit("a", n=9)
    for job in jobs:
        job.cancel()
    assert not scheduler.close(drain=False) or scheduler.load.running == 0
    with pytest.raises(Busy, match="closed"):
        scheduler.submit("a")
    assert scheduler.load.running == scheduler.load.waiting == 0


def test_closing_finishes_what_was_begun(generator):
    scheduler = Scheduler(generator, batch_size=2)
    jobs = [scheduler.submit(p, PARCEL, seed=0) for p in prompts(5)]
    assert scheduler.close(timeout=60)
    assert all(job.future.done() and job.result()[0].value["to"] for job in jobs)


def test_faithful_samplers_run_as_wholes(generator):
    choices = tf.choice(["new", "paid", "lost"])
    alone = generator.sample("It is paid.", choices, sampler=tf.CARS(), seed=5, n=3)
    with Scheduler(generator) as scheduler:
        beside = scheduler.submit("a", tf.regex("[a-z]{30}"))
        job = scheduler.submit("It is paid.", choices, sampler=tf.CARS(), seed=5, n=3)
        assert [one.text for one in job.result(60)] == [one.text for one in alone]
        assert job.result()[0].estimates.exact
        assert len(beside.result(60)[0].text) == 30
        with pytest.raises(BudgetTooSmall):
            scheduler.submit("a", tf.regex("[ab]{90}"), sampler=tf.CARS(), max_tokens=2)
        with pytest.raises(OptionError):
            scheduler.submit("a", choices, sampler=tf.CARS(), penalties=Penalties(frequency=1.0))


def test_a_faithful_sampler_that_is_cancelled_stops(generator):
    with Scheduler(generator) as scheduler:
        job = scheduler.submit(
            "a", tf.regex("[a-z ]{200}"), sampler=tf.SMC(particles=8), n=1, max_tokens=300, seed=0
        )
        time.sleep(0.2)
        job.cancel()
        assert scheduler.submit("b", tf.choice(["x", "y"]), sampler=tf.CARS(), seed=0).result(60)
        assert scheduler.load.jobs == 0 or scheduler.close(timeout=5)


def test_a_cancelled_task_cancels_its_job(generator):
    async def run(scheduler):
        job = scheduler.submit("a", tf.regex("[a-z ]{400}"), max_tokens=600)
        task = asyncio.ensure_future(asyncio.wrap_future(job.future))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return job

    with Scheduler(generator) as scheduler:
        job = asyncio.run(run(scheduler))
        assert job.future.cancelled()
        assert scheduler.submit("a", tf.regex("[a-z]{3}")).result(60)
        assert scheduler.load.running == 0


def test_an_idle_scheduler_has_no_thread(generator):
    scheduler = Scheduler(generator)
    scheduler.submit("a", tf.regex("[a-z]{3}")).result(60)
    thread = scheduler._batch.thread
    if thread is not None:
        thread.join(10)
    assert scheduler._batch.thread is None
    assert scheduler.submit("a", tf.regex("[a-z]{3}")).result(60)
    scheduler.close()
