"""Values: each kind makes a JSON value, the way prose writes it, and its JSON Schema.

Purpose: one function a kind, in one table (`KINDS`), so that a new kind is one entry.
Invariant: the value can be read off the text; where the two differ (a date written out, a number
word) the difference is a rule that holds everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import pools
from .pools import Pools

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
NUMBER_WORDS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]


@dataclass(frozen=True)
class Value:
    """A JSON value, its text in prose, and the schema that it obeys."""

    value: Any
    text: str
    schema: dict[str, Any]


def _string(text: str, **extra: Any) -> Value:
    return Value(text, text, {"type": "string", **extra})


def _person(p: Pools) -> Value:
    first, last = p.name(pools.FIRST_NAMES, 0.4), p.name(pools.LAST_NAMES, 0.5)
    middle = f" {p.rng.choice('ABCDEFGHJKLMNPRSTW')}." if p.rng.random() < 0.05 else ""
    return _string(f"{first}{middle} {last}")


def _company(p: Pools) -> Value:
    name = p.name(pools.LAST_NAMES, 0.7)
    return _string(f"{name} {p.rng.choice(pools.SUFFIXES)}" if p.rng.random() < 0.7 else name)


def _product(p: Pools) -> Value:
    words = [p.pick(pools.NOUNS)]
    if p.rng.random() < 0.6:
        words.insert(0, p.rng.choice([p.pick(pools.ADJECTIVES), p.pick(pools.COLORS), p.made_up(1, 2)]))
    return _string(" ".join(words))


def _title(p: Pools) -> Value:
    noun, other = p.pick(pools.NOUNS).capitalize(), p.name(pools.CITIES, 0.6)
    adjective = p.pick(pools.ADJECTIVES).capitalize()
    forms = (
        f"The {adjective} {noun}",
        f"{noun} of {other}",
        f"{other} {noun}",
        f"The {noun} in {other}",
        other,
    )
    return _string(p.rng.choice(forms))


def _word(p: Pools) -> Value:
    words = p.rng.choice([pools.NOUNS, pools.TOPICS, pools.FOODS, pools.COLORS])
    return _string(p.made_up(1, 3) if p.rng.random() < 0.5 else p.pick(words))


def _code(p: Pools) -> Value:
    letters = "".join(p.rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(p.rng.randint(1, 3)))
    return _string(letters + p.rng.choice(["-", "", "-"]) + str(p.rng.randint(10, 9999)))


def _email(p: Pools) -> Value:
    user = p.name(pools.FIRST_NAMES).lower()
    if p.rng.random() < 0.4:
        user += p.rng.choice([".", "_"]) + p.name(pools.LAST_NAMES).lower()
    domain = p.rng.choice(["mail", "post", "example", p.made_up(1, 2)])
    return _string(f"{user}@{domain}.{p.rng.choice(['com', 'org', 'net'])}", format="email")


def _url(p: Pools) -> Value:
    path = "/" + p.made_up(1, 2) if p.rng.random() < 0.4 else ""
    return _string(
        f"https://{p.made_up(1, 2)}.{p.rng.choice(['com', 'org', 'net', 'io'])}{path}", format="uri"
    )


def _phone(p: Pools) -> Value:
    r = p.rng
    return _string(f"+{r.randint(1, 99)} {r.randint(100, 999)} {r.randint(1000, 9999)}")


def _date(p: Pools) -> Value:
    year, month, day = p.rng.randint(1900, 2030), p.rng.randint(1, 12), p.rng.randint(1, 28)
    iso = f"{year}-{month:02d}-{day:02d}"
    written = (iso, iso, iso, f"{day} {MONTHS[month - 1]} {year}", f"{MONTHS[month - 1]} {day}, {year}")
    return Value(iso, p.rng.choice(written), {"type": "string", "format": "date"})


def _time(p: Pools) -> Value:
    return _string(f"{p.rng.randint(0, 23):02d}:{p.rng.randint(0, 59):02d}")


def _integer(low: int, high: int) -> Callable[[Pools], Value]:
    def draw(p: Pools) -> Value:
        number = p.rng.randint(low, high)
        words = 2 <= number <= 12 and p.rng.random() < 0.1
        return Value(number, NUMBER_WORDS[number] if words else str(number), {"type": "integer"})

    return draw


def _any_integer(p: Pools) -> Value:
    number = p.rng.randrange(10 ** p.rng.randint(1, 5))
    return Value(number, str(number), {"type": "integer"})


def _decimal(p: Pools) -> Value:
    digits = p.rng.choice([1, 1, 2])
    number = round(p.rng.uniform(0.1, 10 ** p.rng.randint(1, 3)), digits)
    text = f"{number:.2f}" if p.rng.random() < 0.3 else repr(number)
    return Value(number, text, {"type": "number"})


def _boolean(p: Pools) -> Value:
    truth = p.rng.random() < 0.5
    return Value(truth, p.rng.choice([("no", "yes"), ("false", "true")])[truth], {"type": "boolean"})


def _pooled(words: list[str], made_up: float = 0.0) -> Callable[[Pools], Value]:
    return lambda p: _string(p.name(words, made_up) if made_up else p.pick(words))


def choice(p: Pools, options: list[str]) -> Value:
    """One of the options, as an enum (options in a random order, two at least)."""
    kept = p.rng.sample(options, min(len(options), p.rng.randint(2, 5)))
    return _string(p.rng.choice(kept), enum=kept)


def listing(p: Pools, kind: str) -> Value:
    """One to four distinct values of a kind, written 'a, b and c'."""
    items: list[Value] = []
    for _ in range(p.rng.randint(1, 4)):
        item = KINDS[kind](p)
        if all(item.value != other.value for other in items):
            items.append(item)
    counted = kind == "product" and p.rng.random() < 0.5
    texts = [f"{_article(item.text)} {item.text}" if counted else item.text for item in items]
    joiner = p.rng.choice([" and ", " and ", ", "])
    text = texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + joiner + texts[-1]
    return Value([item.value for item in items], text, {"type": "array", "items": items[0].schema})


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


KINDS: dict[str, Callable[[Pools], Value]] = {
    "person": _person,
    "first": _pooled(pools.FIRST_NAMES, 0.4),
    "city": _pooled(pools.CITIES, 0.5),
    "country": _pooled(pools.COUNTRIES, 0.2),
    "company": _company,
    "product": _product,
    "title": _title,
    "word": _word,
    "topic": _pooled(pools.TOPICS, 0.0),
    "food": _pooled(pools.FOODS, 0.0),
    "color": _pooled(pools.COLORS, 0.0),
    "language": _pooled(pools.LANGUAGES, 0.0),
    "code": _code,
    "email": _email,
    "url": _url,
    "phone": _phone,
    "date": _date,
    "time": _time,
    "year": lambda p: Value(y := p.rng.randint(1700, 2030), str(y), {"type": "integer"}),
    "age": lambda p: Value(a := p.rng.randint(13, 99), str(a), {"type": "integer"}),
    "small": _integer(1, 20),
    "medium": _integer(10, 999),
    "integer": _any_integer,
    "decimal": _decimal,
    "boolean": _boolean,
}


def draw(p: Pools, kind: str) -> Value:
    """A value of a kind: a name in `KINDS`, `a/b/c` (enum of those) or `kind*` (a list)."""
    if kind.endswith("*"):
        return listing(p, kind[:-1])
    if "/" in kind:
        return choice(p, kind.split("/"))
    return KINDS[kind](p)
