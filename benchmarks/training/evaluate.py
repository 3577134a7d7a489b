"""How well the built-in model copies facts: `python -m benchmarks.training.evaluate`.

Purpose: on unseen prompts with unseen schemas (held-out names, words and field combinations), the exact
match of fields and the validity, under the schema and without it.
Invariant: a field is a leaf of the true document (a list counts as one leaf); it matches when the value that
stands at the same place of the output is equal in JSON's sense (1 is 1.0, but not true).  A text that is no
JSON matches nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .data import Example, examples

EVALUATION_SEED = 20_260_101


@dataclass
class Score:
    """Counts over the examples scored so far."""

    examples: int = 0
    parsed: int = 0
    valid: int = 0
    exact: int = 0
    fields: int = 0
    matched: int = 0
    by_type: dict[str, list[int]] = field(default_factory=dict)

    def report(self) -> dict[str, Any]:
        """Shares between 0 and 1; `field_match_by_type` by the type of the true value."""
        return {
            "examples": self.examples,
            "json": self.parsed / self.examples,
            "valid": self.valid / self.examples,
            "document_match": self.exact / self.examples,
            "field_match": self.matched / self.fields,
            "field_match_by_type": {kind: hit / total for kind, (hit, total) in sorted(self.by_type.items())},
        }


def leaves(document: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, value) of everything that is not an object."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, document


def at(document: Any, path: tuple[str, ...]) -> tuple[bool, Any]:
    """Whether something stands at the path, and what."""
    for key in path:
        if not isinstance(document, dict) or key not in document:
            return False, None
        document = document[key]
    return True, document


def equal(left: Any, right: Any) -> bool:
    """Equality of JSON values: booleans are no numbers."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def score(texts: list[str], batch: list[Example]) -> Score:
    """Compares each text with the document of its example."""
    from jsonschema import Draft202012Validator

    total = Score()
    for text, example in zip(texts, batch, strict=True):
        assert example.record is not None
        truth, document = example.record.document, None
        total.examples += 1
        try:
            document = json.loads(text)
            total.parsed += 1
            total.valid += Draft202012Validator(example.record.schema).is_valid(document)
        except ValueError:
            pass
        hits = 0
        for path, value in leaves(truth):
            found, other = at(document, path)
            hit = found and equal(other, value)
            counts = total.by_type.setdefault(type(value).__name__, [0, 0])
            counts[0] += hit
            counts[1] += 1
            total.fields += 1
            hits += hit
        total.matched += hits
        total.exact += hits == sum(1 for _ in leaves(truth)) and document is not None
    return total


def greedy(
    model: Any, tokenizer: Any, prompts: list[str], max_tokens: int, batch_size: int = 50
) -> list[str]:
    """Plain greedy decoding, without any constraint."""
    import torch

    texts: list[str] = [""] * len(prompts)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    for begin in range(0, len(order), batch_size):
        chosen = order[begin : begin + batch_size]
        inputs = tokenizer(
            [prompts[i] for i in chosen],
            add_special_tokens=False,
            return_tensors="pt",
            padding=True,
            padding_side="left",
            return_token_type_ids=False,
        ).to(model.device)
        with torch.inference_mode():
            output = model.generate(**inputs, max_new_tokens=max_tokens, do_sample=False)
        for i, row in zip(chosen, output[:, inputs["input_ids"].shape[1] :], strict=True):
            texts[i] = tokenizer.decode(row, skip_special_tokens=True)
    return texts


def constrained(
    model: Any, tokenizer: Any, batch: list[Example], max_tokens: int, batch_size: int = 50
) -> list[str]:
    """Greedy decoding under each example's schema."""
    import tokenform as tf

    generator = tf.Generator(model, tokenizer, sampler=tf.Local(temperature=0.0))
    texts: list[str] = []
    for begin in range(0, len(batch), batch_size):
        part = batch[begin : begin + batch_size]
        schemas = [e.record.schema for e in part if e.record is not None]
        grammars = [tf.json_schema(schema, whitespace="spaced") for schema in schemas]
        results = generator.sample([e.prompt for e in part], grammars, max_tokens=max_tokens)
        texts += [result.text for (result,) in results]
    return texts


def main() -> None:
    """Reads the options, decodes, prints the report as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--weights", type=Path, default=None, help="folder of a model (default: the built-in one)"
    )
    parser.add_argument("--draft", action="store_true", help="evaluate the draft model")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--mode", choices=["both", "constrained", "plain"], default="both")
    parser.add_argument("--show", type=int, default=0, help="print so many examples")
    options = parser.parse_args()
    from tokenform.builtin import loading

    if options.weights is not None:
        model, tokenizer = loading.read(options.weights)
    else:
        model, tokenizer = loading.load_draft() if options.draft else loading.load()
    batch = examples(EVALUATION_SEED, options.count, held_out=True, tools=0.0)
    report: dict[str, Any] = {}
    for mode in ("constrained", "plain"):
        if options.mode not in ("both", mode):
            continue
        began = time.perf_counter()
        if mode == "plain":
            texts = greedy(model, tokenizer, [e.prompt for e in batch], options.max_tokens)
        else:
            texts = constrained(model, tokenizer, batch, options.max_tokens)
        report[mode] = {**score(texts, batch).report(), "seconds": round(time.perf_counter() - began, 1)}
        for text, example in list(zip(texts, batch, strict=True))[: options.show]:
            print(f"{example.prompt}\n  want {example.answer}\n  got  {text}")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
