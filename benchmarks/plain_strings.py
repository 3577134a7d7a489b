"""What would change if strings of any text were weighed against the spans of their prompt, too.

    python benchmarks/plain_strings.py .real/smollm2              # ten minutes on one core

Purpose: a decision that is not made yet (`docs/decisions/values-in-the-prompt.md`).  Spans are weighed where
a pattern restricts a string; here the greedy documents of three sets are written as ever, and each of their
strings is compared afterwards with the spans of the prompt: by the model's probability of the whole string
and of a quote after it.
Sets: the tasks of `prompts.py`; those of `extraction`; questions whose answer does not stand in the prompt
(`spans.py`, and 18 that ask for a text of the model's own).
Columns: strings; of those that a span is likelier than, with at least a hundredth of the mass: right before
and not after, right after and not before, and all.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import prompts
import spans
import tokenform as tf
from tokenform.decoding.result_field import json_values
from tokenform_bench.evaluate.tasks import make_tasks

WORDS = 6
"""Most words of a span."""
SCORED = 14
"""Spans that are scored for a string: those with the likeliest first tokens."""
LEAST = -4.6
"""Natural logarithm of the probability that a span has at least."""
OWN = (
    ("Write a short slogan for a bakery.", "slogan"), ("Invent a name for a grey cat.", "name"),
    ("Write a title for a story about a lonely robot on Mars.", "title"),
    ("Summarize in a few words: The meeting moved from Monday to Thursday; the manager is ill.", "summary"),
    ("Translate to French: good morning", "translation"), ("Who wrote Romeo and Juliet?", "author"),
    ("Translate into Spanish: The house is red.", "translation"), ("Write one sentence about rain.", "text"),
    ("What is a good synonym for happy?", "synonym"), ("Describe a dog in one word.", "word"),
    ("What language do they speak in Brazil?", "language"), ("Why is the sky blue?", "reason"),
    ("Name an animal that lives in the sea.", "animal"), ("What day comes after Tuesday?", "day"),
    ("Write a reply to: Are you coming to the party tonight?", "reply"),
    ("Classify the tone of this mail: I am very disappointed with your service.", "tone"),
    ("Write a tweet about our new shoe, the Runner 3000.", "tweet"),
    ("Suggest a city for a beach holiday in Spain.", "city"),
)  # fmt: skip


class Asked(NamedTuple):
    """A prompt, the schema of its document, and the right document; None in it: nobody knows."""

    prompt: str
    schema: Any
    answer: Any


def sets() -> Iterator[tuple[str, list[Asked]]]:
    def field(prompt: str, name: str, value: str | None) -> Asked:
        one = {"properties": {name: {"type": "string"}}, "required": [name], "additionalProperties": False}
        return Asked(prompt, {"type": "object", **one}, {name: value})

    numbered = enumerate(prompts.TASKS)
    yield (
        "prompts",
        [
            Asked(prompts.prompt_of(number, one), one.kind.model_json_schema(), one.answer)
            for number, one in numbered
        ],
    )
    yield "extraction", [Asked(one.text, one.schema, one.answer) for one in make_tasks("extraction", 40, 0)]
    elsewhere = [field(one.prompt, spans.NAMES.get(one.kind, one.kind), one.value) for one in spans.ELSEWHERE]
    yield "elsewhere", elsewhere + [field(prompt, name, None) for prompt, name in OWN]


def spans_of(prompt: str) -> list[str]:
    """The prompt's runs of words, with and without marks around them."""
    words = [word.span() for word in re.finditer(r"\S+", prompt)]
    found = dict[str, None]()
    for first in range(len(words)):
        for last in words[first : first + WORDS]:
            text = prompt[words[first][0] : last[1]]
            found |= dict.fromkeys(one for one in (text, text.strip(".,;:!?()'")) if one)
    return [one for one in found if '"' not in one and "\\" not in one]


def free_strings(schema: Any, text: str) -> Iterator[tuple[tuple[Any, ...], str, int]]:
    """(path, value, where it begins) of each string of a document that nothing restricts."""
    for path, value, start, _ in json_values(text):
        part = schema
        for step in path:
            while "$ref" in part:
                part = schema["$defs"][part["$ref"].rpartition("/")[2]]
            part = (
                part.get("items", {}) if isinstance(step, int) else part.get("properties", {}).get(step, {})
            )
        if isinstance(value, str) and not {"enum", "const", "pattern", "format", "$ref", "anyOf"} & {*part}:
            yield path, value, start + 1


class Scorer:
    """The model's own probability of whole strings."""

    def __init__(self, folder: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        shown = [self.tokenizer.decode([token]) for token in range(len(self.tokenizer))]
        self._quotes = torch.tensor([token for token, text in enumerate(shown) if text.startswith('"')])

    @torch.no_grad()
    def scores(self, before: list[int], options: list[str]) -> dict[str, float]:
        """Natural logarithms for the first option, and for others with the likeliest first tokens."""
        read = self._model(torch.tensor([before]), use_cache=True)
        first = read.logits[0, -1].log_softmax(-1)
        coded = [self.tokenizer.encode(one) for one in options]
        order = sorted(range(1, len(coded)), key=lambda one: -float(first[coded[one][0]]))
        kept = [0, *order[:SCORED]]
        longest, past = max(len(coded[one]) for one in kept), copy.deepcopy(read.past_key_values)
        past.batch_repeat_interleave(len(kept))
        ids = torch.tensor([coded[one] + [0] * (longest - len(coded[one])) for one in kept])
        seen = torch.ones(len(kept), len(before) + longest, dtype=torch.long)
        own = self._model(ids, past_key_values=past, attention_mask=seen).logits.log_softmax(-1)
        found = {}
        for row, one in enumerate(kept):
            tokens = coded[one]
            later = sum(float(own[row, at, token]) for at, token in enumerate(tokens[1:]))
            end = float(own[row, len(tokens) - 1, self._quotes].logsumexp(0))
            found[options[one]] = float(first[tokens[0]]) + later + end
        return found


def at(document: Any, path: tuple[Any, ...]) -> Any:
    """What stands at a place of a document; None: nothing does."""
    for step in path:
        inside = step < len(document) if isinstance(document, list) else step in document
        if not inside:
            return None
        document = document[step]
    return document


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model")
    told = parser.parse_args()
    torch.set_num_threads(1)
    writer, scorer = tf.Generator(told.model), Scorer(told.model)
    print(f"{'':12} strings  lost  won  changed")
    for name, tasks in sets():
        strings, lost, won, changes = 0, 0, 0, list[str]()
        for task in tasks:
            result = writer.generate(task.prompt, task.schema, max_tokens=160, logprobs=False)
            for path, value, start in free_strings(task.schema, result.text):
                strings += 1
                written = json.dumps(value, ensure_ascii=False)[1:-1]
                if not written:
                    continue
                before = [*result.prompt.ids, *scorer.tokenizer.encode(result.text[:start])]
                scores = scorer.scores(before, list(dict.fromkeys([written, *spans_of(task.prompt)])))
                best = max(scores, key=scores.__getitem__)
                if best == written or scores[best] < LEAST:
                    continue
                wanted = str(at(task.answer, path)).casefold()
                lost, won = lost + (value.casefold() == wanted), won + (best.casefold() == wanted)
                changes.append(f"{value[:30]!r} -> {best[:30]!r}")
        print(f"{name:12} {strings:7} {lost:5} {won:4} {len(changes):8}  {'; '.join(changes)}", flush=True)


if __name__ == "__main__":
    main()
