"""Whether what a budget makes of a text is marked: texts within random budgets beside those with room.

    python benchmarks/budgets.py .real/smollm2                # 500 texts; ten minutes on one core
    python benchmarks/budgets.py builtin --count 2000

Each prompt of `benchmarks/prompts.py` and of the scoreboard's extraction tasks is answered once with room for
400 tokens, greedily, and then within random budgets, from the shortest that some document fits to that of the
whole text.  A value that differs from that of the longer text and lies in no place of `result.cut` is
unmarked; so is a text that a budget cut short whose reason is not "length", or the other way round.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from typing import Any

import tokenform as tf
from prompts import TASKS, prompt_of
from tokenform_bench.evaluate.tasks import make_tasks

ROOM = 400


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """(JSON Pointer, value) of the scalars and empty containers."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = [(key.replace("~", "~0").replace("/", "~1"), one) for key, one in value.items()]
    elif isinstance(value, list):
        inside = list(enumerate(value))
    if not inside:
        yield place, value
    for key, one in inside:
        yield from leaves(one, f"{place}/{key}")


def unmarked(short: tf.Result, long: tf.Result) -> list[str]:
    """The places of values that a longer budget makes another, and that are not said to be cut."""
    whole = dict(leaves(json.loads(long.text)))
    places = {place for place, value in leaves(json.loads(short.text)) if whole.get(place, ...) != value}
    cut = tuple(short.cut)
    found = [p for p in places if not any(p == one or p.startswith(f"{one}/") or not one for one in cut)]
    complete = tuple(short.tokens) == tuple(long.tokens)
    if complete != (short.reason != "length") and long.reason != "length":
        found.append(f"reason {short.reason}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model", help='a folder, or "builtin"')
    parser.add_argument("--count", type=int, default=500, help="texts within budgets")
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    writer = tf.Generator(None if told.model == "builtin" else told.model, drafter=None, batch_size=32)
    asked: list[tuple[str, Any]] = [
        (prompt_of(number, task), tf.from_type(task.kind)) for number, task in enumerate(TASKS)
    ]
    asked += [(task.text, tf.json_schema(task.schema)) for task in make_tasks("extraction", 40, told.seed)]
    longs = [one for (one,) in writer.sample([p for p, _ in asked], [g for _, g in asked], max_tokens=ROOM)]
    rng, bad, cuts, done = random.Random(told.seed), 0, 0, 0
    by_budget: dict[int, list[int]] = {}
    for _ in range(told.count):
        number = rng.randrange(len(asked))
        automaton = asked[number][1].compile(writer.vocabulary)
        least = automaton.distance(automaton.start)
        budget = (
            rng.randint(least, max(len(longs[number].tokens), least)) // 4 * 4 + 4
        )  # so that many run together
        by_budget.setdefault(budget, []).append(number)
    for budget, numbers in sorted(by_budget.items()):
        prompts, grammars = [asked[n][0] for n in numbers], [asked[n][1] for n in numbers]
        for number, (short,) in zip(
            numbers, writer.sample(prompts, grammars, max_tokens=budget), strict=True
        ):
            places, done, cuts = unmarked(short, longs[number]), done + 1, cuts + (short.reason == "length")
            bad += bool(places)
            if places:
                print(f"{places}  budget {budget}: {short.text!r} cut {short.cut}\n  {longs[number].text!r}")
    print(f"{done} texts, {cuts} cut by their budget, {bad} with a value that is not marked")


if __name__ == "__main__":
    main()
