"""What partial values cost a token: real documents, cut as a tokenizer cuts them.

    python benchmarks/partial.py --count 1000

Says µs a token for the text alone (decoding pieces), for values of JSON, and the longest document's.
"""

from __future__ import annotations

import argparse
import statistics
import time

import tokenform as tf
from tokenform.decoding.pieces import TextPieces
from tokenform.frontends.json_reader import JsonReader
from tokenform_bench.data import read_maskbench
from tokenform_bench.documents import write


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    count = parser.parse_args().count
    vocabulary = tf.Generator().vocabulary
    tokens = vocabulary.tokens
    texts = [write(document.data) for case in read_maskbench() for document in case.documents][:count]
    pieces = [[tokens[token] for token in vocabulary.greedy(text.encode()) or []] for text in texts]
    costs: dict[str, list[float]] = {"text": [], "values": []}
    for parts in pieces:
        for name in costs:
            reader, text = JsonReader(), TextPieces()
            began = time.thread_time()
            for part in parts:
                piece = text.feed(part)
                if name == "values" and piece:
                    reader.feed(piece)
                    reader.value()
            costs[name].append((time.thread_time() - began) / max(len(parts), 1) * 1e6)
    number = sum(map(len, pieces))
    more = [b - a for a, b in zip(costs["text"], costs["values"], strict=True)]
    mean = sum(m * len(p) for m, p in zip(more, pieces, strict=True)) / number
    longest = max(range(len(pieces)), key=lambda i: len(pieces[i]))
    print(f"{len(texts)} documents, {number} tokens: {mean:.2f} µs a token more than the text alone")
    print(
        f"median document {statistics.median(more):.2f}; "
        f"the longest ({len(pieces[longest])} tokens) {more[longest]:.2f}"
    )


if __name__ == "__main__":
    main()
