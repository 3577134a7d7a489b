"""Forced text cut as the tokenizer cuts it, or in any way: what a real model writes then.

    make real
    python benchmarks/forced_text.py .real/smollm2 --count 12

Needs a chat model by path.  Tasks are the extraction tasks of the scoreboard, greedy, with the names shown
before the text (the default) and with nothing shown.  Printed: fields right, all right, nats a token and a
text under the model alone, passes, CPU seconds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass

import tokenform as tf
from tokenform_bench.evaluate.tasks.extraction import make
from tokenform_bench.evaluate.tasks.grading import mark_text


@dataclass
class Sums:
    """Over all tasks."""

    right: int = 0
    fields: int = 0
    whole: int = 0
    tokens: int = 0
    passes: int = 0
    nats: float = 0.0
    seconds: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--count", type=int, default=40, help="tasks")
    parser.add_argument("--aside", action="store_true", help="of those that are kept aside")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = [(shown, forced) for shown in ("auto", False) for forced in ("any", "canonical")]
    writers = {way: tf.Generator(chosen.model, sampler=tf.Local(0.0, forced=way[1])) for way in ways}
    sums = {way: Sums() for way in ways}
    for task in make(chosen.count, 0, chosen.aside):
        for way in ways:
            began, one = time.process_time(), sums[way]
            result = writers[way].sample(
                task.prompt, tf.json_schema(task.schema), max_tokens=160, show_schema=way[0]
            )[0]
            marks = mark_text(task.answer, result.text)
            one.right, one.fields = one.right + marks.fields_right, one.fields + marks.fields
            one.whole, one.tokens = one.whole + marks.right, one.tokens + len(result.tokens)
            one.passes, one.nats = one.passes + result.stats.forwards, one.nats - result.logprob
            one.seconds += time.process_time() - began
    for (shown, forced), one in sums.items():
        print(
            f"shown {shown!s:5} {forced:9} fields right {one.right / one.fields:.3f}, whole {one.whole}, "
            f"nats a token {one.nats / one.tokens:.3f}, a text {one.nats / chosen.count:.1f}, "
            f"{one.tokens} tokens in {one.passes} passes, {one.seconds:.1f} CPU s"
        )


if __name__ == "__main__":
    main()
