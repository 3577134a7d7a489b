"""What is read of calls with faults, in each format, under each choice, with thoughts of each kind.

    python benchmarks/thoughts_and_calls.py [--rows 20000] [--shard 0/2] [--formats hermes glm45] [--show 5]

The turns are those of `tests/tools/written`: each format's template, broken in one place.  With `--templates
FOLDER` instead: chat templates (`*.jinja`, as `llama.cpp` has them in `models/templates`) render right calls,
which are read in the format that is found from them.

read      all calls, the content and the thought as they were meant
refused   an error; the other calls are kept
text      the format has no marker for calls, and what is none is text
lost      an error, and a call beside the broken one is gone with it
wrong     no error, and something else than was meant
as said   the share of rows that became what their fault leaves: one reading is read, two are an error
taken     of what the template writes, what the grammar takes; of those, streamed alike by characters
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.tools.written.faults import same
from tests.tools.written.rows import TOOLS, Row, calls, good, outcome, pairs, rows, streamed_alike

import tokenform as tf
from tokenform.errors import TokenformError
from tokenform.frontends.tools.templates import Template

BYTES = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], eos=[256])
OUTCOMES = ("read", "refused", "text", "lost", "wrong")
_automata: dict[tuple[str, str, str], Any] = {}


def taken(row: Row) -> bool:
    """Whether the grammar takes the output."""
    key = row.format, row.choice, row.prompt
    if key not in _automata:
        grammar = tf.tools(
            TOOLS, format=row.format, tool_choice=row.choice, prompt=row.prompt, json_options={"order": "any"}
        )
        _automata[key] = grammar.compile(BYTES)
    return bool(_automata[key].matches(row.output.encode()))


def rendered(folder: Path, draws: int = 25) -> None:
    """What is read of calls that real templates write."""
    total: Counter[str] = Counter()
    for path in sorted(folder.glob("*.jinja")):
        counts: Counter[str] = Counter()
        try:
            template = Template.of(path.read_text())
            form = tf.tool_formats.detect_format(template.text)
        except TokenformError as error:
            total["no known format"] += 1
            print(f"{path.stem:50}{str(error)[:90]}")
            continue
        for number in range(draws):
            meant = calls(random.Random(number))
            written = _turn(template, meant, dict) or _turn(template, meant, json.dumps)
            if written is None and len(meant) > 1:
                counts["not written"] += 1  # the template refuses several calls
                continue
            try:
                found = pairs(tf.parse_tool_calls(written or "", TOOLS, format=form))
            except TokenformError as error:
                found = [(str(error), {})]
            right = len(found) == len(meant) and all(map(same, found, meant))
            counts["read" if right else "not written" if written is None else "wrong"] += 1
            if not right and written is not None:
                print(f"    {written!r}\n    {meant}\n    {found}")
        total += counts
        print(f"{path.stem:50}{form.name:18}{dict(counts)}")
    print(dict(total))


def _turn(template: Template, meant: list[Any], spell: Any) -> str | None:
    """The assistant's turn with these calls; None: the template does not write it."""
    made = [
        {"id": f"call{n:05}", "type": "function", "function": {"name": name, "arguments": spell(given)}}
        for n, (name, given) in enumerate(meant)
    ]
    user, turn = {"role": "user", "content": "Qhi"}, {"role": "assistant", "content": "", "tool_calls": made}
    try:
        text = template.render([user, turn], TOOLS)
    except TokenformError:
        return None
    written = text[text.rindex("Qhi") + 3 :] if "Qhi" in text else ""
    return written if all(name in written for name, _ in meant) else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--shard", default="0/1")
    parser.add_argument("--formats", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=3, help="rows of each kind that is not as said")
    parser.add_argument("--templates", type=Path)
    given = parser.parse_args()
    if given.templates:
        rendered(given.templates)
        return
    shard, shards = map(int, given.shard.split("/"))
    table: dict[str, Counter[str]] = defaultdict(Counter)
    shown: Counter[tuple[str, str]] = Counter()
    for number, row in enumerate(rows(given.rows, given.seed, given.formats)):
        if number % shards != shard:
            continue
        became, why = outcome(row)
        counts = [table[row.fault], table["all"]]
        fine = good(row, became)
        for count in counts:
            count["rows"] += 1
            count[became] += 1
            count["as said"] += fine
        if row.fault in ("right", "other_order"):
            fits = taken(row)
            for count in counts:
                count["of"] += 1
                count["taken"] += fits
            if not fits:
                print("NOT TAKEN", row.format, row.choice, row.thought, repr(row.output))
        if number % 5 == 0 and not streamed_alike(row):
            print("STREAM", row.format, row.fault, repr(row.output))
        if not fine:
            shown[row.format, row.fault] += 1
            if shown[row.format, row.fault] <= given.show:
                print(
                    f"{became.upper()} (said {row.turn.expect})",
                    row.format,
                    row.fault,
                    row.choice,
                    row.thought,
                )
                print(f"    {row.output!r}\n    meant {row.turn.meant}\n    {why}")
    print(
        f"{'fault':26}{'rows':>7}"
        + "".join(f"{name:>9}" for name in OUTCOMES)
        + f"{'as said':>10}{'taken':>12}"
    )
    for fault in sorted(table, key=lambda name: (name == "all", name)):
        one = table[fault]
        share = f"{one['as said'] / one['rows']:.2%}"
        fits = f"{one['taken']} of {one['of']}" if one["of"] else "-"
        print(
            f"{fault:26}{one['rows']:>7}"
            + "".join(f"{one[name]:>9}" for name in OUTCOMES)
            + f"{share:>10}{fits:>12}"
        )
    print(Counter({f"{f} {k}": n for (f, k), n in shown.items()}).most_common(60))


if __name__ == "__main__":
    main()
