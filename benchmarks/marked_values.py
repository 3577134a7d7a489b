"""Values with the markers of every format inside: written under masks and read back, or refused by them.

    python benchmarks/marked_values.py [--values 5000] [--formats hermes glm45]

The texts are those of each format's template (`tests/tools/written`): one call with such a value, another
argument behind it or none.

kept     the masks take the call, and it reads back byte for byte
refused  the masks refuse it before it is written
changed  the masks take it, and it reads back as something else
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.tools.written.values import fate, own_markers, value
from tests.tools.written.writers import WRITERS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--values", type=int, default=5000)
    parser.add_argument("--formats", nargs="*", default=list(WRITERS))
    given = parser.parse_args()
    total: Counter[str] = Counter()
    print(f"{'format':16}{'kept':>8}{'refused':>9}{'changed':>9}")
    for name in given.formats:
        rng, counts = random.Random(name), Counter[str]()
        own = own_markers(WRITERS[name])
        for _ in range(given.values // len(given.formats)):
            text = value(rng, own)
            became = fate(name, text, rng.random() < 0.5)
            counts[became] += 1
            if became == "changed":
                print(f"CHANGED {name} {text!r}")
        print(f"{name:16}{counts['kept']:>8}{counts['refused']:>9}{counts['changed']:>9}", flush=True)
        total += counts
    print(f"{'all':16}{total['kept']:>8}{total['refused']:>9}{total['changed']:>9}")


if __name__ == "__main__":
    main()
