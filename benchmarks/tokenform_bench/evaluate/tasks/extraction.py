"""Extraction and classification: a text, a JSON Schema, and the one right document.

Purpose: 240 tasks with answers, made by rule and without a model: 40 in the open (`extraction`), against
which prompts and defaults are chosen, and 200 kept aside (`extraction_aside`), which only judge.
Invariant: the two sets share neither names, things and opinions nor the sentences that hold them; every
leaf of the answer stands in the text (a date in words, an amount in figures), so that it can be read off.
Half of the schemas are closed, half are open, as `pydantic` writes them.
Source: the kinds are those of everyday use: people, orders, invoices, tickets, reviews.
Rejected: texts that a model wrote (their answers would be another model's), and data sets from the network.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tokenform_bench.evaluate.tasks import words
from tokenform_bench.evaluate.tasks.task import Task

INSTRUCTIONS = (
    "Extract the data from the text. Answer with JSON.\n\nText: {text}",
    "Return the {noun} in this text as JSON.\n\n{text}",
    "{text}\n\nGive me the {noun} above as a JSON object.",
    "Read the text and fill in the {noun} as JSON.\n\nText: {text}\n\nJSON:",
)
Made = tuple[str, dict[str, Any], dict[str, Any]]
"""(text, properties of the schema, answer)."""

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


@dataclass(frozen=True)
class Draw:
    """A task's choices: of the half of the words and sentences that its set uses."""

    rng: random.Random
    aside: bool

    def one(self, values: Any) -> Any:
        return self.rng.choice(words.half(values, self.aside))

    def some(self, values: Any, count: int) -> list[Any]:
        return self.rng.sample(list(words.half(values, self.aside)), count)

    def price(self, low: int, high: int) -> float:
        return self.rng.randint(low * 4, high * 4) / 4

    def date(self) -> tuple[str, str]:
        """(in words, as the schema's format wants it)."""
        year, month, day = self.rng.randint(2019, 2027), self.rng.randint(1, 12), self.rng.randint(1, 28)
        name = words.MONTHS[month - 1]
        spoken = self.rng.choice((f"{day} {name} {year}", f"{name} {day}, {year}"))
        return spoken, f"{year}-{month:02}-{day:02}"


def object_schema(properties: dict[str, Any], closed: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
    return {**schema, "additionalProperties": False} if closed else schema


def _money(value: float) -> str:
    return f"{value:.2f}" if value % 1 else f"{value:.0f}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _person(draw: Draw) -> Made:
    name, city, job, born = (
        draw.one(words.NAMES),
        draw.one(words.CITIES),
        draw.one(words.JOBS),
        draw.rng.randint(1931, 2004),
    )
    text = draw.one(
        (
            f"{name} was born in {born} and works as a {job} in {city}.",
            f"Our neighbour {name}, a {job}, moved to {city} last year; birth year on the form: {born}.",
            f"In {city} I met {name}, who is a {job} and was born in {born}.",
            f"Profile: {name}. Trade: {job}. Year of birth {born}. Lives in {city} with two cats.",
        )
    )
    properties = {
        "name": STRING,
        "born": {"type": "integer", "description": "year of birth"},
        "occupation": STRING,
        "city": STRING,
    }
    return text, properties, {"name": name, "born": born, "occupation": job, "city": city}


def _order(draw: Draw) -> Made:
    goods = draw.some(words.GOODS, draw.rng.randint(1, 3))
    items = [{"product": g, "quantity": draw.rng.randint(1, 6), "price": draw.price(5, 120)} for g in goods]
    total = sum(item["quantity"] * item["price"] for item in items)
    said = _listed([f"{i['quantity']} x {i['product']} at {_money(i['price'])} each" for i in items])
    name = draw.one(words.NAMES)
    text = draw.one(
        (
            f"{name} ordered {said}. The total is {_money(total)} euros.",
            f"Order of {name}: {said}; to pay: {_money(total)}.",
            f"Please send {name} the following: {said}. That makes {_money(total)} altogether.",
            f"We have received an order for {said} from {name}, {_money(total)} in total.",
        )
    )
    item = object_schema(
        {"product": STRING, "quantity": INTEGER, "price": {"type": "number", "description": "of one"}}, True
    )
    properties = {"customer": STRING, "items": {"type": "array", "items": item}, "total": NUMBER}
    return text, properties, {"customer": name, "items": items, "total": total}


def _event(draw: Draw) -> Made:
    title, place, guests = draw.one(words.EVENTS), draw.one(words.PLACES), 10 * draw.rng.randint(3, 90)
    spoken, date = draw.date()
    text = draw.one(
        (
            f"The {title} takes place on {spoken} at {place}. {guests} guests are expected.",
            f"Save the date: {title}, {spoken}, {place}. There is room for {guests} guests.",
            f"On {spoken} we celebrate the {title} at {place} with {guests} guests.",
            f"{guests} guests have booked for the {title} ({place}, {spoken}).",
        )
    )
    when = {"type": "string", "format": "date", "description": "YYYY-MM-DD"}
    properties = {"title": STRING, "date": when, "place": STRING, "guests": INTEGER}
    return text, properties, {"title": title, "date": date, "place": place, "guests": guests}


def _sentiment(draw: Draw) -> Made:
    label = draw.rng.choice(tuple(words.OPINIONS))
    thing, opinion = draw.one(words.PRODUCTS), draw.one(words.OPINIONS[label])
    text = draw.one(
        (
            f"The {thing} {opinion}.",
            f"Review of the {thing}: it {opinion}.",
            f"Customer comment: my new {thing} {opinion}.",
            f"I bought the {thing} a month ago. It {opinion}.",
        )
    )
    return text, {"sentiment": {"type": "string", "enum": list(words.OPINIONS)}}, {"sentiment": label}


def _topic(draw: Draw) -> Made:
    label = draw.rng.choice(tuple(words.REPORTS))
    report, city = draw.one(words.REPORTS[label]), draw.one(words.CITIES)
    text = draw.one(
        (
            f"{city}. {report}",
            f"{report} Our correspondent reports from {city}.",
            f"News from {city}: {report}",
            f"{report} ({city}, this morning)",
        )
    )
    return text, {"topic": {"type": "string", "enum": list(words.REPORTS)}}, {"topic": label}


def _product(draw: Draw) -> Made:
    name, price, stock = draw.one(words.PRODUCTS), draw.price(15, 400), draw.rng.random() < 0.5
    colours = draw.some(words.COLOURS, draw.rng.randint(1, 3))
    there = "in stock" if stock else "sold out"
    text = draw.one(
        (
            f"The {name} costs {_money(price)} euros, comes in {_listed(colours)}, and is {there}.",
            f"{name}, {there}. Price: {_money(price)}. Colours: {_listed(colours)}.",
            f"You can have the {name} in {_listed(colours)} for {_money(price)}; right now it is {there}.",
            f"Catalogue entry: {name} ({_listed(colours)}), {_money(price)} each, {there}.",
        )
    )
    properties = {
        "name": STRING,
        "price": NUMBER,
        "in_stock": {"type": "boolean"},
        "colours": {"type": "array", "items": STRING},
    }
    return text, properties, {"name": name, "price": price, "in_stock": stock, "colours": colours}


def _invoice(draw: Draw) -> Made:
    number = f"{draw.rng.choice('ABCDR')}-{draw.rng.randint(1000, 9999)}"
    vendor, amount, currency = (
        draw.one(words.VENDORS),
        draw.price(40, 2500),
        draw.rng.choice(("EUR", "USD", "GBP")),
    )
    spoken, due = draw.date()
    text = draw.one(
        (
            f"Invoice {number} from {vendor} over {currency} {amount:.2f} is due on {spoken}.",
            f"{vendor} bills you {amount:.2f} {currency} (invoice no. {number}). Please pay by {spoken}.",
            f"Reminder: invoice {number}, {amount:.2f} {currency}, payable to {vendor} until {spoken}.",
            f"Due {spoken}: {vendor}, invoice number {number}, amount {amount:.2f} {currency}.",
        )
    )
    properties = {
        "number": STRING,
        "vendor": STRING,
        "amount": NUMBER,
        "currency": {"enum": ["EUR", "USD", "GBP"]},
        "due": {"type": "string", "format": "date", "description": "YYYY-MM-DD"},
    }
    return (
        text,
        properties,
        {"number": number, "vendor": vendor, "amount": amount, "currency": currency, "due": due},
    )


def _contact(draw: Draw) -> Made:
    name, city = draw.one(words.NAMES), draw.one(words.CITIES)
    mailbox = name.split()[-1].lower().replace("'", "").encode("ascii", "ignore").decode()
    email = f"{mailbox}@example.{draw.rng.choice(('org', 'com', 'net'))}"
    phone = f"+{draw.rng.randint(30, 99)} {draw.rng.randint(100, 999)} {draw.rng.randint(100000, 999999)}"
    text = draw.one(
        (
            f"You reach {name} in {city} at {email} or by phone, {phone}.",
            f"Contact: {name}, {city}, tel. {phone}, mail {email}",
            f"{name} has moved to {city}. The number is {phone} now, the address {email} stays.",
            f"Write to {email} or call {phone} and ask for {name} ({city} office).",
        )
    )
    properties = {"name": STRING, "city": STRING, "email": STRING, "phone": STRING}
    return text, properties, {"name": name, "city": city, "email": email, "phone": phone}


def _meeting(draw: Draw) -> Made:
    day, room = draw.rng.choice(words.WEEKDAYS), draw.one(words.ROOMS)
    clock = f"{draw.rng.randint(8, 18):02}:{draw.rng.choice((0, 15, 30, 45)):02}"
    people = [name.split()[0] for name in draw.some(words.NAMES, draw.rng.randint(2, 4))]
    text = draw.one(
        (
            f"{_listed(people)} meet on {day} at {clock} in room {room}.",
            f"{day}, {clock}, room {room}: meeting with {_listed(people)}.",
            f"Room {room} is booked for {_listed(people)} on {day} from {clock}.",
            f"Can we talk on {day} at {clock}? I have reserved room {room} for {_listed(people)}.",
        )
    )
    properties = {
        "day": {"enum": list(words.WEEKDAYS)},
        "time": {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"},
        "room": STRING,
        "participants": {"type": "array", "items": STRING, "minItems": 1},
    }
    return text, properties, {"day": day, "time": clock, "room": room, "participants": people}


def _ticket(draw: Draw) -> Made:
    number, priority = draw.rng.randint(100, 9999), draw.rng.choice(("low", "medium", "high"))
    component = draw.one(words.COMPONENTS)
    owner = None if draw.rng.random() < 0.3 else draw.one(words.NAMES)
    given = "assigned to nobody" if owner is None else f"assigned to {owner}"
    text = draw.one(
        (
            f"Ticket {number}: the {component} fails. Priority {priority}, {given}.",
            f"#{number} ({priority} priority, {given}): errors in the {component}.",
            f"The {component} has been broken since noon: ticket {number}, {given}, {priority} priority.",
            f"{priority.capitalize()} priority: the {component} is down. See ticket {number}, {given}.",
        )
    )
    properties = {
        "id": INTEGER,
        "priority": {"enum": ["low", "medium", "high"]},
        "component": STRING,
        "assignee": {"anyOf": [STRING, {"type": "null"}]},
    }
    return text, properties, {"id": number, "priority": priority, "component": component, "assignee": owner}


def _recipe(draw: Draw) -> Made:
    dish, servings = draw.one(words.DISHES), draw.rng.randint(2, 8)
    used = draw.some(words.INGREDIENTS, draw.rng.randint(2, 4))
    parts = [{"name": name, "grams": 10 * draw.rng.randint(3, 80)} for name in used]
    said = _listed([f"{part['grams']} g of {part['name']}" for part in parts])
    text = draw.one(
        (
            f"For {dish} ({servings} servings) take {said}.",
            f"{dish.capitalize()}: {said}. Serves {servings}.",
            f"You need {said} to make {dish} for {servings} people.",
            f"Our {dish} feeds {servings}. It is made of {said}.",
        )
    )
    item = object_schema({"name": STRING, "grams": INTEGER}, True)
    properties = {"dish": STRING, "servings": INTEGER, "ingredients": {"type": "array", "items": item}}
    return text, properties, {"dish": dish, "servings": servings, "ingredients": parts}


def _trip(draw: Draw) -> Made:
    name, stops = draw.one(words.NAMES), draw.some(words.CITIES, draw.rng.randint(3, 4))
    hours = [draw.rng.randint(2, 14) for _ in stops[1:]]
    legs = [{"from": a, "to": b, "hours": h} for a, b, h in zip(stops, stops[1:], hours, strict=False)]
    said = _listed([f"from {leg['from']} to {leg['to']} in {leg['hours']} hours" for leg in legs])
    text = draw.one(
        (
            f"{name} travels {said}.",
            f"Itinerary for {name}: {said}.",
            f"The tour takes {name} {said}.",
            f"Booked by {name}: trains {said}.",
        )
    )
    leg = object_schema({"from": STRING, "to": STRING, "hours": INTEGER}, True)
    return (
        text,
        {"traveller": STRING, "legs": {"type": "array", "items": leg}},
        {"traveller": name, "legs": legs},
    )


KINDS: dict[str, Callable[[Draw], Made]] = {
    "person": _person,
    "order": _order,
    "event": _event,
    "sentiment": _sentiment,
    "topic": _topic,
    "product": _product,
    "invoice": _invoice,
    "contact": _contact,
    "meeting": _meeting,
    "ticket": _ticket,
    "recipe": _recipe,
    "trip": _trip,
}


def make(count: int, seed: int, aside: bool = False) -> Iterator[Task]:
    """`count` tasks, the kinds in turn; the first ones are the same for every count. No text comes twice."""
    family, names, seen = "extraction_aside" if aside else "extraction", list(KINDS), set[str]()
    for number in range(count):
        kind, again = names[number % len(names)], 0
        while True:
            draw = Draw(random.Random(f"{seed}:{family}:{number}:{again}"), aside)
            text, properties, answer = KINDS[kind](draw)
            if text not in seen:
                break
            again += 1
        seen.add(text)
        asked = draw.rng.choice(INSTRUCTIONS).format(text=text, noun=kind)
        closed = number // len(names) % 2 == 0
        yield Task(
            f"{family}-{number}-{kind}", family, asked, object_schema(properties, closed), answer, text
        )
