"""What a chat model writes under each way of spelling JSON: escapes, breaks, nats a token, fields right.

    python benchmarks/spelling.py .real/smollm2 2>texts.txt
    python benchmarks/spelling.py .real/smollm2 --rows default,any --texts texts.json
    python benchmarks/spelling.py .real/smollm2 --beside texts.json   # another build's: how many changed

18 tasks (persons, orders, events, sentiments, nested lists, invoices, tickets), each as bare text and as a
chat message with an instruction; greedy, 160 tokens at most.  Counted are texts that spell an ASCII letter or
digit by an escape, and those with a blank or a break before a comma or colon, which no writer writes.  Nats
are the model's own for the text that was written, without the constraint: high where the model was made to go
on in a way that it would not.  Needs a model with a chat template (`make real` brings one).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import tokenform as tf
from tokenform_bench.tables import text_table

ROWS: dict[str, dict[str, Any]] = {
    "default": {},
    "any": {"strings": "any", "whitespace": "any"},
    "strings any": {"strings": "any"},
    "whitespace any": {"whitespace": "any"},
    "canonical": {"strings": "canonical"},
    "spaced": {"whitespace": "spaced"},
    "indent": {"whitespace": "indent"},
}
ESCAPED = re.compile(r"\\u00(3[0-9]|[46][1-9a-f]|[57][0-9a]|5f)", re.IGNORECASE)
MISPLACED = re.compile(r"[ \n\t\r][,:]")
STRING = re.compile(r'"(\\.|[^"\\])*"')


def a(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


def entity(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def several(item: Any) -> dict[str, Any]:
    return {"type": "array", "items": item}


TEXT, WHOLE, NUMBER, YES = a("string"), a("integer"), a("number"), a("boolean")
PERSON = entity(name=TEXT, born=WHOLE, city=TEXT)
ORDER = entity(customer=TEXT, items=several(TEXT), total=NUMBER, paid=YES)
EVENT = entity(title=TEXT, date=a("string", format="date"), place=TEXT)
SENTIMENT = entity(sentiment={"enum": ["positive", "negative", "neutral"]})
TOPIC = entity(topic={"enum": ["sports", "politics", "science", "business"]}, keywords=several(TEXT))
FAMILY = entity(family=TEXT, members=several(entity(name=TEXT, age=WHOLE)))
INVOICE = entity(number=TEXT, company=TEXT, lines=several(entity(article=TEXT, price=NUMBER)), currency=TEXT)
TICKET = entity(title=TEXT, priority={"enum": ["low", "medium", "high"]}, labels=several(TEXT), open=YES)

TASKS: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (
        PERSON,
        "Ada Lovelace was born in 1815 in London.",
        {"name": "Ada Lovelace", "born": 1815, "city": "London"},
    ),
    (
        PERSON,
        "Born in 1879 in Ulm, Albert Einstein became a physicist.",
        {"name": "Albert Einstein", "born": 1879, "city": "Ulm"},
    ),
    (PERSON, "René Müller, *1972, lives in Zürich.", {"name": "René Müller", "born": 1972, "city": "Zürich"}),
    (
        ORDER,
        "Mia Wong bought a lamp and a chair for 130 dollars and has paid.",
        {"customer": "Mia Wong", "items": ["lamp", "chair"], "total": 130, "paid": True},
    ),
    (
        ORDER,
        "Tom Baker ordered a desk for 89.50 euros; the payment is still open.",
        {"customer": "Tom Baker", "items": ["desk"], "total": 89.5, "paid": False},
    ),
    (
        EVENT,
        "The Rust meetup takes place on 2026-03-14 in Berlin.",
        {"title": "Rust meetup", "date": "2026-03-14", "place": "Berlin"},
    ),
    (
        EVENT,
        "Jazz Night: 5 June 2027 at the Blue Note.",
        {"title": "Jazz Night", "date": "2027-06-05", "place": "Blue Note"},
    ),
    (SENTIMENT, "I loved every minute of this film!", {"sentiment": "positive"}),
    (SENTIMENT, "The food was cold and the waiter was rude.", {"sentiment": "negative"}),
    (SENTIMENT, "The parcel arrived on Tuesday.", {"sentiment": "neutral"}),
    (TOPIC, "Parliament voted on the new tax law today.", {"topic": "politics"}),
    (TOPIC, "The striker scored twice in the final.", {"topic": "sports"}),
    (
        FAMILY,
        "The Smiths: Anna is 34, Ben is 36 and little Cleo is 5.",
        {"family": "Smith", "members": [{"name": "Anna", "age": 34}, {"name": "Ben", "age": 36}]},
    ),
    (
        INVOICE,
        "Invoice A-17 of Hill & Sons: a pump for 120.00 EUR and a valve for 15.50 EUR.",
        {"number": "A-17", "company": "Hill & Sons", "currency": "EUR"},
    ),
    (
        INVOICE,
        "Acme Ltd. bills (number 2024/991) two filters at 7 dollars each, USD.",
        {"number": "2024/991", "company": "Acme Ltd.", "currency": "USD"},
    ),
    (
        TICKET,
        'Ticket: "Login fails after update", high priority, labels auth and regression, not closed yet.',
        {"title": "Login fails after update", "priority": "high", "open": True},
    ),
    (
        TICKET,
        "Please fix the typo on the start page some day. Labels: docs. Still open, low priority.",
        {"priority": "low", "labels": ["docs"], "open": True},
    ),
    (
        several(PERSON),
        "Marie Curie was born in Warsaw in 1867, Niels Bohr in Copenhagen in 1885.",
        {"0": {"name": "Marie Curie", "born": 1867, "city": "Warsaw"}},
    ),
]


def leaves(answer: Any, value: Any) -> Iterator[bool]:
    """Whether each value of the answer is that of the document."""
    if isinstance(answer, dict):
        for key, item in answer.items():
            if isinstance(value, list):
                yield from leaves(item, value[int(key)] if key.isdigit() and int(key) < len(value) else None)
            else:
                yield from leaves(item, value.get(key) if isinstance(value, dict) else None)
    elif isinstance(answer, list):
        for i, item in enumerate(answer):
            yield from leaves(item, value[i] if isinstance(value, list) and i < len(value) else None)
    elif isinstance(answer, str):
        yield isinstance(value, str) and value.strip().lower() == answer.lower()
    else:
        yield value == answer


def prompts(tokenizer: Any, text: str) -> dict[str, list[int]]:
    """The text alone, as a newcomer writes it, and as a chat message with an instruction."""
    said = f"Extract the data from the text. Answer with JSON.\n\nText: {text}"
    chat = [{"role": "user", "content": said}]
    templated = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    bare = f"Extract the data as JSON: {text}\n"
    ids = {"bare": bare, "chat": templated}
    return {name: tokenizer.encode(one, add_special_tokens=False) for name, one in ids.items()}


@torch.inference_mode()
def nats(model: Any, prompt: list[int], tokens: list[int]) -> float:
    """The model's surprise at the tokens, without any constraint."""
    logits = model(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1 : -1].float()
    return -float(torch.log_softmax(logits, -1)[range(len(tokens)), tokens].sum())


def measure(model: Any, tokenizer: Any, options: dict[str, Any], tasks: int) -> dict[str, dict[str, Any]]:
    """The texts by prompt and task, with what is told of each."""
    generator = tf.Generator(model, tokenizer, drafter=None, batch_size=2 * tasks)
    asked = [
        (f"{form} {number}", prompt, schema, answer)
        for number, (schema, text, answer) in enumerate(TASKS[:tasks])
        for form, prompt in prompts(tokenizer, text).items()
    ]
    grammars = [tf.json_schema(schema, **options) for _, _, schema, _ in asked]
    written = generator.sample([ids for _, ids, _, _ in asked], grammars, seed=0, max_tokens=160)
    found: dict[str, dict[str, Any]] = {}
    for (name, prompt, _, answer), (result,) in zip(asked, written, strict=True):
        blank = STRING.sub('""', result.text)
        found[name] = {
            "text": result.text,
            "escaped": bool(ESCAPED.search(result.text)),
            "misplaced": bool(MISPLACED.search(blank)),
            "tokens": len(result.tokens),
            "nats": nats(model, prompt, list(result.tokens)),
            "right": list(leaves(answer, json.loads(result.text))),
        }
        print(f"{name}: {result.text}", file=sys.stderr, flush=True)
    return found


def row(name: str, form: str, found: dict[str, dict[str, Any]], beside: dict[str, Any] | None) -> list[str]:
    own = {key: one for key, one in found.items() if key.startswith(form)}
    right = [leaf for one in own.values() for leaf in one["right"]]
    tokens = sum(one["tokens"] for one in own.values())
    changed = (
        "" if beside is None else str(sum(one["text"] != beside[key]["text"] for key, one in own.items()))
    )
    return [
        f"{name}, {form}",
        str(len(own)),
        str(sum(one["escaped"] for one in own.values())),
        str(sum(one["misplaced"] for one in own.values())),
        f"{sum(right) / len(right):.0%}",
        str(tokens),
        f"{sum(one['nats'] for one in own.values()) / tokens:.3f}",
        f"{sum(one['nats'] for one in own.values()) / len(own):.1f}",
        changed,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model", help="a folder of transformers")
    parser.add_argument("--rows", default="default", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--tasks", type=int, default=len(TASKS))
    parser.add_argument("--texts", type=Path, help="keeps the texts of the first row here")
    parser.add_argument("--beside", type=Path, help="texts that another build kept: how many are changed")
    arguments = parser.parse_args()
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32).eval()
    beside = json.loads(arguments.beside.read_text("utf-8")) if arguments.beside else None
    table = []
    for name in arguments.rows.split(","):
        found = measure(model, tokenizer, ROWS[name], arguments.tasks)
        if arguments.texts and not table:
            arguments.texts.write_text(json.dumps(found, indent=1), "utf-8")
        beside = found if beside is None else beside
        table += [row(name, form, found, beside) for form in ("bare", "chat")]
    header = [
        "options, prompt",
        "texts",
        "escaped",
        "misplaced",
        "right",
        "tokens",
        "nats a token",
        "a text",
        "changed",
    ]
    print(text_table(header, table))


if __name__ == "__main__":
    main()
