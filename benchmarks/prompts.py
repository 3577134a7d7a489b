"""What a chat model writes under a constraint by what it is shown: fields right, by form of the prompt.

    python benchmarks/prompts.py .real/smollm2                       # all forms; ten minutes on one core
    python benchmarks/prompts.py .real/smollm2 --forms bare,ours     # some
    python benchmarks/prompts.py .real/smollm2 --tasks 20            # half of the tasks, two of each kind

40 tasks with known answers, made by rule (`TASKS`): persons, orders, events, sentiments, topics, products,
invoices, contacts, meetings, tickets.  A prompt is what a newcomer writes: the text alone, or a line and the
text.  The constraint is a pydantic type.  Greedy, 160 tokens at most.  A field is right where its value is
that of the answer (texts without regard to case and outer blanks; of a list each item counts); the share is
the mean over the tasks.
Needs a model with a chat template (`make real` brings one).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

import tokenform as tf


class Person(BaseModel):
    name: str
    born: int
    city: str


class Order(BaseModel):
    customer: str
    items: list[str]
    total: float
    paid: bool


class Event(BaseModel):
    title: str = Field(description="what the event is called")
    date: str = Field(description="as YYYY-MM-DD")
    place: str
    seats: int


class Sentiment(BaseModel):
    sentiment: Literal["positive", "negative"]


class Topic(BaseModel):
    topic: Literal["sports", "politics", "science", "business"]


class Product(BaseModel):
    name: str
    price: float
    colour: str
    in_stock: bool


class Invoice(BaseModel):
    number: str
    company: str
    amount: float


class Contact(BaseModel):
    name: str
    email: str
    phone: str


class Meeting(BaseModel):
    day: Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
    time: str = Field(description="HH:MM")
    people: list[str]


class Ticket(BaseModel):
    id: int
    priority: Literal["low", "medium", "high"]
    component: str


@dataclass(frozen=True)
class Task:
    kind: type[BaseModel]
    line: str
    text: str
    answer: dict[str, Any]


def _tasks() -> Iterator[Task]:
    for name, born, city in (
        ("Ada Lovelace", 1815, "London"), ("Karl Berg", 1972, "Oslo"), ("Ines Duarte", 1990, "Porto"),
        ("Tom Okafor", 1964, "Lagos"),
    ):  # fmt: skip
        text = f"{name} was born in {born} and lives in {city}."
        yield Task(Person, "Extract the person:", text, {"name": name, "born": born, "city": city})
    for customer, items, total, paid in (
        ("Maria Rossi", ["lamp", "chair"], 412.5, True), ("Jon Lund", ["desk"], 89.0, False),
        ("Aiko Mori", ["tea", "cups"], 36.4, True), ("Paul Stein", ["bike", "helmet"], 1250.0, False),
    ):  # fmt: skip
        state = "It is paid." if paid else "It has not been paid yet."
        text = f"{customer} ordered a {' and a '.join(items)} for {total:.2f} euros. {state}"
        answer = {"customer": customer, "items": items, "total": total, "paid": paid}
        yield Task(Order, "Read this order:", text, answer)
    for title, date, said, place, seats in (
        ("Jazz Night", "2024-05-17", "17 May 2024", "Lisbon", 120),
        ("Rust Day", "2025-09-03", "3 September 2025", "Berlin", 300),
        ("Book Fair", "2023-11-21", "21 November 2023", "Dublin", 80),
        ("Open Garden", "2026-06-08", "8 June 2026", "Ghent", 45),
    ):
        text = f"The {title} takes place on {said} in {place}; there are {seats} seats."
        answer = {"title": title, "date": date, "place": place, "seats": seats}
        yield Task(Event, "Give me the event in this text:", text, answer)
    for text, sentiment in (
        ("The food was cold and the waiter was rude.", "negative"),
        ("Great battery, I love this phone!", "positive"),
        ("Broke after two days. A waste of money.", "negative"),
        ("The best holiday that we have had in years.", "positive"),
    ):
        yield Task(Sentiment, "What is the sentiment of this review?", text, {"sentiment": sentiment})
    for text, topic in (
        ("The striker scored twice in the final minutes of the match.", "sports"),
        ("Parliament voted on the new election law on Tuesday.", "politics"),
        ("Astronomers have found water vapour on a distant planet.", "science"),
        ("Shares of the carmaker fell after weak quarterly profits.", "business"),
    ):
        yield Task(Topic, "Which topic is this?", text, {"topic": topic})
    for name, price, colour, stock in (
        ("Trail Backpack", 79.9, "green", True), ("Kettle Pro", 34.5, "black", False),
        ("Wool Scarf", 25.0, "red", True), ("Desk Lamp", 48.75, "white", False),
    ):  # fmt: skip
        state = "in stock" if stock else "sold out"
        text = f"{name}: {colour}, costs {price:.2f} dollars and is {state}."
        answer = {"name": name, "price": price, "colour": colour, "in_stock": stock}
        yield Task(Product, "Extract the product:", text, answer)
    for number, company, amount in (
        ("INV-2041", "Brightside Ltd", 1200.0), ("R-77", "Novak and Sons", 88.2),
        ("2024-019", "Polar Foods", 310.0), ("A1009", "Delta Print", 45.6),
    ):  # fmt: skip
        text = f"Please pay invoice {number} from {company}. The amount due is {amount:.2f} euros."
        answer = {"number": number, "company": company, "amount": amount}
        yield Task(Invoice, "Get the data of the invoice:", text, answer)
    for name, email, phone in (
        ("Lena Fischer", "lena@fischer.de", "030 55512"), ("Omar Haddad", "omar.h@mail.com", "555-0142"),
        ("Sofia Costa", "sofia@costa.pt", "21 346 7788"), ("Ben Wright", "bwright@post.org", "020 7946 0018"),
    ):  # fmt: skip
        text = f"You can reach {name} at {email} or by phone at {phone}."
        yield Task(Contact, "Extract the contact:", text, {"name": name, "email": email, "phone": phone})
    for day, at, people in (
        ("Monday", "09:30", ["Anna", "Ben"]), ("Thursday", "14:00", ["Chloe", "Dev", "Eva"]),
        ("Friday", "11:15", ["Finn", "Gita"]), ("Tuesday", "16:45", ["Hugo", "Ida"]),
    ):  # fmt: skip
        text = f"Let us meet on {day} at {at}; {', '.join(people[:-1])} and {people[-1]} will be there."
        yield Task(Meeting, "When is the meeting?", text, {"day": day, "time": at, "people": people})
    for number, priority, component in (
        (318, "high", "login"), (42, "low", "search"), (1077, "medium", "billing"), (9, "high", "export"),
    ):  # fmt: skip
        text = f"Ticket {number}: the {component} component fails. The priority is {priority}."
        answer = {"id": number, "priority": priority, "component": component}
        yield Task(Ticket, "Read the ticket:", text, answer)


TASKS = list(_tasks())


def prompt_of(number: int, task: Task) -> str:
    """As a newcomer writes it: the text alone, or a line and the text, in turns."""
    return f"{task.line} {task.text}" if number % 4 in (1, 2) else task.text


def leaves(value: Any, place: str = "") -> dict[str, Any]:
    """The fields of a document, those of lists with their number."""
    if isinstance(value, dict):
        inside = [leaves(one, f"{place}/{key}") for key, one in value.items()]
    elif isinstance(value, list):
        inside = [leaves(one, f"{place}/{number}") for number, one in enumerate(value)]
    else:
        return {place: value.strip().casefold() if isinstance(value, str) else value}
    return {key: one for part in inside for key, one in part.items()}


def found(text: str) -> str:
    """The first JSON object in a text."""
    for place, sign in enumerate(text):
        if sign == "{":
            try:
                return json.dumps(json.JSONDecoder().raw_decode(text, place)[0])
            except ValueError:
                continue
    return ""


def right(task: Task, text: str) -> tuple[int, int]:
    """Fields that are right, of how many: a list that is too long counts its excess."""
    try:
        written = leaves(json.loads(text))
    except ValueError:
        written = {}
    wanted = leaves(task.answer)
    return sum(written.get(key, ...) == one for key, one in wanted.items()), len({*wanted, *written})


def user(content: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": content}]


def fields_of(kind: type[BaseModel]) -> dict[str, Any]:
    return dict(kind.model_json_schema()["properties"])


def named(kind: type[BaseModel]) -> str:
    """The fields in words: `name, born, city`."""
    return ", ".join(fields_of(kind))


def chosen(kind: type[BaseModel]) -> str:
    """The same with what values of an enum there are."""
    words = [
        f"{name} ({' or '.join(one['enum'])})" if "enum" in one else name
        for name, one in fields_of(kind).items()
    ]
    return ", ".join(words)


def noted(kind: type[BaseModel]) -> str:
    """The same with descriptions, where there are some."""
    every = fields_of(kind).items()
    return ", ".join(
        f"{name} ({one['description']})" if "description" in one else name for name, one in every
    )


def described(kind: type[BaseModel]) -> str:
    """A line for each field."""
    lines = []
    for name, one in fields_of(kind).items():
        words = [one.get("description"), " or ".join(one["enum"]) if "enum" in one else one["type"]]
        lines.append(f"- {name}: {', '.join(word for word in words if word)}")
    return "\n".join(lines)


def outline(kind: type[BaseModel]) -> str:
    """The document with types in the place of values."""
    return json.dumps({name: one["type"] for name, one in fields_of(kind).items()})


Form = Callable[[str, type[BaseModel]], Any]
FORMS: dict[str, Form] = {
    "chat": lambda text, kind: user(text),
    "note": lambda text, kind: user(f"Extract the data from the text. Answer with JSON.\n\nText: {text}"),
    "after": lambda text, kind: user(f"{text}\n\nAnswer with JSON."),
    "before": lambda text, kind: user(f"Answer with JSON.\n\n{text}"),
    "system": lambda text, kind: [{"role": "system", "content": "Answer with JSON."}, *user(text)],
    "names": lambda text, kind: user(f"{text}\n\nAnswer with JSON with the fields {named(kind)}."),
    "names before": lambda text, kind: user(f"Answer with JSON with the fields {named(kind)}.\n\n{text}"),
    "keys": lambda text, kind: user(
        f"{text}\n\nAnswer with JSON with the keys {', '.join(map(json.dumps, fields_of(kind)))}."
    ),
    "options": lambda text, kind: user(f"{text}\n\nAnswer with JSON with the fields {chosen(kind)}."),
    "notes before": lambda text, kind: user(f"Answer with JSON with the fields {noted(kind)}.\n\n{text}"),
    "lines": lambda text, kind: user(f"{text}\n\nAnswer with JSON with these fields:\n{described(kind)}"),
    "outline": lambda text, kind: user(f"{text}\n\nAnswer with JSON like this: {outline(kind)}"),
    "schema": lambda text, kind: user(
        f"{text}\n\nAnswer with JSON that matches this JSON Schema: {json.dumps(kind.model_json_schema())}"
    ),
}
"""What is shown, by name; each makes chat messages of the newcomer's prompt and the type.  Beside them:
"bare", the text without the chat template; "ours", the text as the library shows it; "free", the same without
the constraint, of which the first JSON object in the text is taken."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--forms", help="names with commas between them; all where it is left out")
    parser.add_argument("--tasks", type=int, default=len(TASKS), help="how many, spread over the kinds")
    parser.add_argument("--texts", type=Path, help="a file for what was written, a JSON object a line")
    told = parser.parse_args()
    writer = tf.Generator(told.model, drafter=None, batch_size=20)
    step = max(len(TASKS) // told.tasks, 1)
    tasks = [(number, task) for number, task in enumerate(TASKS)][::step]
    print(f"{len(tasks)} tasks\n{'form':14} all right  fields right  tokens  CPU s")
    for name in told.forms.split(",") if told.forms else ["bare", "free", "ours", *FORMS]:
        begun = time.process_time()
        results = written(writer, name, tasks)
        spent, whole, shares = time.process_time() - begun, 0, 0.0
        for (_, task), result in zip(tasks, results, strict=True):
            good, of = right(task, found(result.text) if name == "free" else result.text)
            whole, shares = whole + (good == of), shares + good / of
            if told.texts is not None:
                kept = {"form": name, "kind": task.kind.__name__, "right": [good, of], "text": result.text}
                with told.texts.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(kept, ensure_ascii=False) + "\n")
        tokens, share = sum(len(result.tokens) for result in results), 100 * shares / len(tasks)
        print(f"{name:14} {whole:9} {share:11.1f} %  {tokens:6}  {spent:5.0f}", flush=True)


def written(writer: tf.Generator, name: str, tasks: list[tuple[int, Task]]) -> list[Any]:
    """The model's answers to the tasks as one form shows them."""
    show = FORMS.get(name, lambda text, _: text)
    prompts = [show(prompt_of(number, task), task.kind) for number, task in tasks]
    kinds: list[Any] = [task.kind for _, task in tasks]
    if name == "free":
        prompts = [writer.show(text, kind).ids for text, kind in zip(prompts, kinds, strict=True)]
        kinds = [tf.combinators.any_text()] * len(tasks)
    raw = True if name == "bare" else None
    results = writer.sample([*prompts], kinds, max_tokens=160, logprobs=False, raw=raw)
    return [one for (one,) in results]


if __name__ == "__main__":
    main()
