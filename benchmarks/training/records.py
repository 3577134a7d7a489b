"""Records: a few facts about one thing, as prose and as the JSON document that a schema asks for.

Purpose: the heart of the training data.  A record draws a domain and a field combination, writes
the facts as sentences, as one run-on line, as a list or with unrelated facts between them, and asks for some
of them by a schema.
Invariant: the document is valid under the schema, and each of its values can be read off the prose.
The held-out split differs in field combinations and in all pooled values (`Pools.held_out`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from . import fields as F
from . import pools, values
from .pools import Pools, is_held_out
from .values import Value


@dataclass
class Fact:
    """A key, its value, and the ways in which the prose may state it."""

    key: str
    label: str
    value: Value
    predicates: tuple[str, ...] = ()
    shorts: tuple[str, ...] = ()


@dataclass
class Record:
    """A text, the schema of what is asked, and the document that answers."""

    text: str
    schema: dict[str, Any]
    document: dict[str, Any]
    fields: tuple[str, ...] = field(default=())


def _label(key: str) -> str:
    return key.replace("_", " ")


def _fill(form: str, value: Value) -> str:
    if "[" in form:
        head, rest = form.split("[", 1)
        inner, tail = rest.split("]", 1)
        return head + inner.split("|")[bool(value.value)] + tail
    return form.replace("{}", value.text)


def _generic(label: str, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    article = "an" if label[0] in "aeiou" else "a"
    return (f"has {article} {label} of {{}}", f"has the {label} {{}}"), (
        f"{label} {{}}",
        f"with {label} {{}}",
    )


def draw_facts(p: Pools, domain: F.Domain, count: int) -> tuple[list[Fact], tuple[str, ...]]:
    """`count` facts of a domain whose combination lies in this part of the split."""
    rng = p.rng
    for _ in range(100):
        chosen = rng.sample(domain.fields, min(count, len(domain.fields)))
        combination = tuple(sorted(f.ident for f in chosen))
        if len(chosen) < 3 or is_held_out("|".join(combination)) == p.held_out:
            break
    facts, used = [], set()
    for f in chosen:
        key = rng.choice(f.keys) if rng.random() < 0.7 else f.keys[0]
        if key in used:
            continue
        used.add(key)
        value = values.draw(p, f.kind)
        predicates, shorts = f.predicates, f.shorts
        if f.kind != "boolean" and (not predicates or rng.random() < 0.25):
            predicates, shorts = _generic(_label(key), f.kind)
        facts.append(Fact(key, _label(key), value, predicates, shorts))
    return facts, combination


GENERIC_KINDS = (
    ["word"] * 4
    + ["integer"] * 3
    + ["small", "decimal", "decimal", "code", "city", "person", "company", "date", "boolean"]
    + ["product", "title", "word*", "integer*", "city*", "email", "time", "color", "first", "first*"]
)


def draw_unknown(p: Pools, count: int) -> list[Fact]:
    """Facts with keys that mean nothing beforehand: they must be found by their name."""
    facts: dict[str, Fact] = {}
    while len(facts) < count:
        r = p.rng.random()
        if r < 0.4:
            key = p.pick(pools.ABSTRACT)
        elif r < 0.7:
            key = f"{p.pick(pools.ABSTRACT)}_{p.pick(pools.ABSTRACT)}"
        elif r < 0.85:
            key = f"{p.pick(pools.NOUNS)}_{p.pick(pools.ABSTRACT)}"
        else:
            key = p.made_up(1, 2)
        kind = p.rng.choice(GENERIC_KINDS)
        if p.rng.random() < 0.15:
            options = [
                p.made_up(1, 2) if p.rng.random() < 0.4 else p.pick(pools.ADJECTIVES) for _ in range(4)
            ]
            kind = "/".join(dict.fromkeys(options))
            if "/" not in kind:
                continue
        value = values.draw(p, kind)
        predicates, shorts = _generic(_label(key), kind)
        facts[key] = Fact(key, _label(key), value, predicates, shorts)
    return list(facts.values())


def _style(p: Pools) -> str:
    return p.rng.choices(["sentences", "line", "list", "labels"], [5, 3, 1.5, 1.5])[0]


def write_facts(p: Pools, subject: str, pronoun: str, facts: list[Fact], style: str) -> str:
    """Prose that states every fact; `subject` is a noun phrase such as 'Ada Lovelace' or 'The order'."""
    rng = p.rng
    if style == "list":
        separator, joiner = rng.choice([": ", ": ", " = "]), rng.choice(["\n", "; ", ", "])
        lines = [f"{f.label if rng.random() < 0.5 else f.key}{separator}{f.value.text}" for f in facts]
        return joiner.join([subject + ":" + ("\n" if joiner == "\n" else " ") + lines[0], *lines[1:]])
    if style == "line":
        shorts = [_fill(rng.choice(f.shorts or (f.label + " {}",)), f.value) for f in facts]
        return subject + "".join(_attached(rng, short) for short in shorts) + "."
    sentences, who, index = [], subject, 0
    while index < len(facts):
        group = facts[index : index + rng.choice([1, 1, 2, 2, 3])]
        index += len(group)
        if style == "labels":
            parts = [f"the {f.label} is {f.value.text}" for f in group]
            sentence = " and ".join(parts)
            sentence = (
                f"For {_lower(subject)}, {sentence}"
                if index == len(group)
                else sentence[0].upper() + sentence[1:]
            )
        else:
            forms = [
                _fill(rng.choice(f.predicates or ("has the " + f.label + " {}",)), f.value) for f in group
            ]
            text = forms[0] if len(forms) == 1 else ", ".join(forms[:-1]) + " and " + forms[-1]
            sentence, who = f"{who} {text}", pronoun if rng.random() < 0.8 else subject
        sentences.append(sentence + ".")
    return " ".join(sentences)


def _attached(rng: random.Random, short: str) -> str:
    """A short form after what stands before it: with a comma, or as a prepositional phrase without one."""
    loose = short.split(" ", 1)[0] in _PREPOSITIONS and rng.random() < 0.5
    return (" " if loose else ", ") + short


_PREPOSITIONS = frozenset(["in", "from", "at", "on", "of", "for", "by", "with", "to", "until"])


def _lower(subject: str) -> str:
    return subject[0].lower() + subject[1:] if subject.startswith("The ") else subject


def _subject(p: Pools, domain: F.Domain, facts: list[Fact]) -> tuple[str, str, list[Fact]]:
    """Subject, pronoun, and the facts that the subject does not state already."""
    pronoun = p.rng.choice(["He", "She"]) if domain.name == "person" else "It"
    for index, fact in enumerate(facts):
        if fact.key in _NAMING and isinstance(fact.value.value, str) and p.rng.random() < 0.85:
            text = fact.value.text
            noun = p.rng.choice(domain.nouns)
            named = domain.name in ("person", "company") or p.rng.random() < 0.4
            return (text if named else f"The {noun} {text}"), pronoun, facts[:index] + facts[index + 1 :]
    if domain.name == "person" and p.rng.random() < 0.6:
        return values.draw(p, "person").text, pronoun, facts
    return "The " + p.rng.choice(domain.nouns), pronoun, facts


_NAMING = frozenset(
    [
        "name",
        "full_name",
        "person",
        "customer_name",
        "title",
        "product",
        "product_name",
        "company",
        "company_name",
        "order_id",
        "id",
        "order_number",
        "ticket_id",
        "dish",
        "event",
    ]
)


def object_schema(facts: list[Fact], rng: random.Random) -> dict[str, Any]:
    """The schema of an object that holds these facts, all required."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {f.key: f.value.schema for f in facts},
        "required": [f.key for f in facts],
    }
    if rng.random() < 0.5:
        schema["additionalProperties"] = False
    return schema


def _restyle(facts: list[Fact], rng: random.Random) -> None:
    """Sometimes spell all keys in camelCase or capitalised; the labels stay."""
    r = rng.random()
    for f in facts:
        if r < 0.12:
            head, *rest = f.key.split("_")
            f.key = head + "".join(word.capitalize() for word in rest)
        elif r < 0.16:
            f.key = f.key.capitalize()


def draw_record(p: Pools, unknown: float = 0.25, nested: float = 0.2) -> Record:
    """One record: a share `unknown` with meaningless keys, a share `nested` with a second object inside."""
    rng = p.rng
    count = rng.choices([1, 2, 3, 4, 5, 6], [2, 4, 6, 5, 3, 1])[0]
    combination: tuple[str, ...] = ()
    if rng.random() < unknown:
        domain = F.Domain("thing", (p.pick(pools.NOUNS), p.made_up(1, 2)), ())
        facts = draw_unknown(p, count + rng.choice([0, 0, 1, 2]))
    else:
        domain = rng.choice(F.DOMAINS)
        facts, combination = draw_facts(p, domain, count + rng.choice([0, 0, 1, 2]))
    subject, pronoun, told = _subject(p, domain, facts)
    style = _style(p)
    text = write_facts(p, subject, pronoun, told, style) if told else subject + "."
    asked = [f for f in facts if rng.random() < count / len(facts)] or facts[:1]
    rng.shuffle(asked)
    inner: tuple[str, list[Fact]] | None = None
    if rng.random() < nested:
        text, inner = _nest(p, domain, text, {f.key for f in asked})
    _restyle(asked + (inner[1] if inner else []), rng)
    document = {f.key: f.value.value for f in asked}
    schema = object_schema(asked, rng)
    if inner is not None:
        key, parts = inner
        document[key] = {f.key: f.value.value for f in parts}
        schema["properties"][key] = object_schema(parts, rng)
        schema["required"].append(key)
    if rng.random() < 0.3:
        schema["title"] = rng.choice(domain.nouns).capitalize()
    return Record(text, schema, document, combination)


def _nest(
    p: Pools, domain: F.Domain, text: str, taken: set[str]
) -> tuple[str, tuple[str, list[Fact]] | None]:
    """Adds a second thing of another domain to the text, asked for as an object of its own."""
    other = p.rng.choice([d for d in F.DOMAINS if d is not domain])
    key = p.rng.choice(other.nouns)
    if key in taken:
        return text, None
    facts, _ = draw_facts(p, other, p.rng.randint(1, 3))
    more = write_facts(p, f"The {key}", "It", facts, p.rng.choice(["sentences", "line"]))
    p.rng.shuffle(facts)
    return f"{text} {more}", (key, facts)
