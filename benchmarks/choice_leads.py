"""What a choice is decided as by how the model's turn begins, and by what counts as its end.

    python benchmarks/choice_leads.py .real/smollm2                   # the 230 development questions
    python benchmarks/choice_leads.py .real/smollm2 --half aside      # the 200 that decided nothing
    python benchmarks/choice_leads.py .real/smollm2 --library         # what the library itself decides, alone

Purpose: a decision that is not made yet (`docs/decisions/whole-values.md`): as the field of a document the
same questions are answered rightly far more often than with `choices=`.
Each option is scored as a whole, in one pass over all of them: the prompt with the line of choices, with that
of a document with the field "answer", or without a line; then the beginning of the model's turn; then the
option and its end: the end of the text, or any token that begins with a quote.
Right of all, by kind of question below.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import tokenform as tf

QUESTIONS = Path(__file__).with_name("choices.jsonl")
OPENED = '{"answer": "'
FORMS = [
    ("choices", "", "text"),
    ("choices", "The answer is:\n\n", "text"),
    ("choices", OPENED, "quote"),
    ("document", OPENED, "quote"),
    ("document", OPENED, "text"),
    ("none", "", "text"),
    ("none", "The answer is:\n\n", "text"),
    ("none", "Answer:", "text"),
    ("none", OPENED, "text"),
    ("none", OPENED, "quote"),
]
"""(the line before the question, the beginning of the model's turn, the end that counts)."""


class Scorer:
    """The model's own probability of whole options."""

    def __init__(self, folder: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        shown = [self.tokenizer.decode([token]) for token in range(len(self.tokenizer))]
        self._ends = {
            "quote": torch.tensor([token for token, text in enumerate(shown) if text.startswith('"')]),
            "text": torch.tensor([self.tokenizer.eos_token_id]),
        }

    @torch.no_grad()
    def likeliest(self, before: list[int], options: list[str], end: str) -> str:
        coded = [self.tokenizer.encode(one) for one in options]
        longest = max(map(len, coded))
        ids = torch.tensor([[*before, *one, *[0] * (longest - len(one))] for one in coded])
        own = self._model(ids).logits[:, len(before) - 1 :].log_softmax(-1)
        scores = [
            sum(float(own[row, at, token]) for at, token in enumerate(one))
            + float(own[row, len(one), self._ends[end]].logsumexp(0))
            for row, one in enumerate(coded)
        ]
        return options[max(range(len(options)), key=scores.__getitem__)]


def document(options: list[str]) -> tf.Grammar:
    field = {"properties": {"answer": {"enum": options}}, "required": ["answer"]}
    return tf.json_schema({"type": "object", **field})


def prompts(writer: tf.Generator, question: str, options: list[str]) -> dict[str, list[int]]:
    """The prompt's ids with each of the lines."""
    shown: dict[str, Any] = {
        "choices": writer.show(question, tf.choice(options)),
        "document": writer.show(question, document(options)),
        "none": writer.show(question, tf.choice(options), show_schema=False),
    }
    return {line: list(prompt.ids) for line, prompt in shown.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--half", choices=["deciding", "aside"], default="deciding")
    parser.add_argument("--library", action="store_true", help="no leads: the library at its defaults")
    parser.add_argument("--every", type=int, default=1, help="take each n-th question")
    told = parser.parse_args()
    torch.set_num_threads(1)
    writer, scorer = tf.Generator(told.model), Scorer(told.model)
    rows = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["half"] == told.half][:: told.every]
    right: defaultdict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        if told.library:
            bare = writer.generate(row["question"], choices=row["options"]).text
            field = writer.generate(row["question"], document(row["options"])).value["answer"]
            right["choices=", "", ""][row["kind"]] += bare == row["right"]
            right["document", "", ""][row["kind"]] += field == row["right"]
            continue
        shown = prompts(writer, row["question"], row["options"])
        for line, begun, end in FORMS:
            before = [*shown[line], *(scorer.tokenizer.encode(begun) if begun else [])]
            found = scorer.likeliest(before, row["options"], end)
            right[line, begun, end][row["kind"]] += found == row["right"]
    kinds = Counter(row["kind"] for row in rows)
    print(f"{len(rows)} questions: {dict(kinds)}")
    for (line, begun, end), by_kind in right.items():
        print(f"{line:9} {begun!r:20} {end:6} {sum(by_kind.values()):4}  {dict(by_kind)}")


if __name__ == "__main__":
    main()
