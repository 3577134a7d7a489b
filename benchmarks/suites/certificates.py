"""Certificates of random constraints, true ones and mutated ones, judged by the checker and by this file.

    python -m benchmarks.suites certificates --true 10000 --mutated 10000
    python -m benchmarks.suites certificates --true 6000 --mutated 6000 --first 4000   # a part of it

Purpose: `tokenform.certificates` accepts what is true and refuses what is not.
Invariant: the judge here knows neither the engine nor the checker: languages are enumerated while a
constraint is drawn, regexes with stars are automata of interegular, and a certificate is true where each of
its claims holds for them.  A mutation that leaves a certificate true is none.
Complexity: a certificate has up to 12 tokens of a vocabulary of 40.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import interegular

import tokenform as tf
from tokenform.certificates import CannotCheck, Unproven, check

Language = Callable[[bytes], bool | None]
"""True: a text of it; False: the beginning of one; None: neither."""
Case = tuple[tf.Grammar, Language]
OPTIONS: dict[str, Any] = {
    "order": "declared",
    "whitespace": "compact",
    "numbers": "natural",
    "strings": "canonical",
}
PIECES = [
    "ab",
    "ba",
    "aa",
    "abc",
    '{"',
    '":',
    '","',
    '"}',
    "tru",
    "ue",
    "null",
    "[[",
    "],[",
    "[]",
    "b]",
    "12",
    "éa",
]
LETTERS = [bytes([byte]) for byte in b'abc123{}[]":,-truefalsn\\'] + [b"\xc3", b"\xa9", b"\n"]
LARGEST = 400


def enumerated(texts: set[bytes]) -> Language:
    beginnings = {text[:n] for text in texts for n in range(len(text) + 1)}
    return lambda text: True if text in texts else False if text in beginnings else None


def of_regex(rng: random.Random) -> Case:
    def draw(depth: int) -> str:
        kind = rng.random()
        if depth == 0 or kind < 0.25:
            return rng.choice(["a", "b", "c", "ab", "[ab]", "[a-c]", "[1-3]", "bca"])
        if kind < 0.55:
            return draw(depth - 1) + draw(depth - 1)
        if kind < 0.75:
            return f"(?:{draw(depth - 1)}|{draw(depth - 1)})"
        return f"(?:{draw(depth - 1)})" + rng.choice(["*", "+", "?", "{2}", "{1,3}", "{2,}"])

    pattern = draw(4)
    machine = interegular.parse_pattern(pattern).to_fsm().reduce()

    def language(text: bytes) -> bool | None:
        state = machine.initial
        for char in text.decode("latin-1"):
            symbol = machine.alphabet[char if char in machine.alphabet else interegular.fsm.anything_else]
            if symbol not in machine.map.get(state, {}):
                return None
            state = machine.map[state][symbol]
        return (state in machine.finals) if machine.islive(state) else None

    return tf.regex(pattern), language


def of_words(rng: random.Random) -> Case:
    words = {
        "".join(rng.choice(["a", "b", "c", "é", "1"]) for _ in range(rng.randint(1, 5))) for _ in range(5)
    }
    return tf.choice(sorted(words)), enumerated({word.encode() for word in words})


def of_gbnf(rng: random.Random) -> Case:
    """Rules that name only later ones, and their texts; or a palindrome, whose texts are told by its form."""
    if rng.random() < 0.2:
        one, other = rng.sample(["a", "b", "c", "1"], 2)

        def nested(text: bytes) -> bool | None:
            inner = text.decode("latin-1")
            opened = len(inner) - len(inner.lstrip(one))
            rest = inner[opened:]
            if not rest:
                return False
            after = rest[1:]
            if rest[0] != "-" or set(after) - {other} or len(after) > opened:
                return None
            return len(after) == opened

        return tf.gbnf(f'root ::= "{one}" root "{other}" | "-"'), nested
    rules: list[str] = []
    texts: list[set[str]] = []  # of rule n, from the last
    for n in reversed(range(rng.randint(1, 4))):
        alternatives, found = [], set[str]()
        for _ in range(rng.randint(1, 3)):
            row, products = [], {""}
            for _ in range(rng.randint(1, 3)):
                if texts and rng.random() < 0.6:
                    pick = rng.randrange(len(texts))
                    symbol, of = f"r{n + len(texts) - pick}", texts[pick]
                else:
                    word = rng.choice(["a", "b", "ab", "é", "12", "{"])
                    symbol, of = (f'"{word}"', {word}) if rng.random() < 0.7 else ("[a-c]", set("abc"))
                mark = rng.choice(["", "", "", "?", "{0,2}"])
                if mark:
                    of = {"", *of} if mark == "?" else {"", *of, *(x + y for x in of for y in of)}
                row.append(symbol + mark)
                products = {x + y for x in products for y in of}
                if len(products) > LARGEST:
                    return of_gbnf(rng)
            alternatives.append(" ".join(row))
            found |= products
        rules.append(f"{'root' if n == 0 else f'r{n}'} ::= {' | '.join(alternatives)}")
        texts.append(found)
    return tf.gbnf("\n".join(reversed(rules))), enumerated({text.encode() for text in texts[-1]})


def of_schema(rng: random.Random) -> Case:
    while True:
        schema, texts = _schema(rng, 2)
        if texts and len(texts) <= LARGEST:
            try:
                return tf.json_schema(schema, **OPTIONS), enumerated({text.encode() for text in texts})
            except tf.errors.UnsatisfiableSchema:
                continue


def _schema(rng: random.Random, depth: int) -> tuple[dict[str, Any], set[str]]:
    kind = rng.choice(
        ["enum", "boolean", "null", "string"] if depth == 0 else ["object", "array", "any", "enum", "object"]
    )
    if kind == "enum":
        values = rng.sample(["a", "ab", 1, 12, True, None, "b\n", "é", -3], rng.randint(1, 3))
        return {"enum": values}, {json.dumps(value, ensure_ascii=False) for value in values}
    if kind == "boolean":
        return {"type": "boolean"}, {"true", "false"}
    if kind == "null":
        return {"type": ["null"]}, {"null"}
    if kind == "string":
        least, most = rng.choice([(0, 1), (1, 2), (2, 2)])
        told = {"type": "string", "pattern": "^[ab]*$", "minLength": least, "maxLength": most}
        texts = {"", "a", "b", "aa", "ab", "ba", "bb"}
        return told, {f'"{text}"' for text in texts if least <= len(text) <= most}
    if kind == "array":
        item, texts = _schema(rng, depth - 1)
        least, most = rng.choice([(0, 1), (1, 2), (2, 2), (0, 2)])
        if len(texts) ** most > LARGEST:
            return item, set()
        rows = {0: {""}, 1: texts, 2: {f"{x},{y}" for x in texts for y in texts}}
        told = {"type": "array", "items": item, "minItems": least, "maxItems": most}
        return told, {f"[{row}]" for n in range(least, most + 1) for row in rows[n]}
    if kind == "any":
        one, other = _schema(rng, 0), _schema(rng, 0)
        return {"anyOf": [one[0], other[0]]}, one[1] | other[1]
    names = rng.sample(["a", "b", "ab", "é"], rng.randint(0, 3))
    parts = {name: _schema(rng, depth - 1) for name in names}
    required = [name for name in names if rng.random() < 0.5]
    documents: set[tuple[str, ...]] = {()}
    for name in names:
        members = {f"{json.dumps(name, ensure_ascii=False)}:{text}" for text in parts[name][1]}
        if len(documents) * len(members) > LARGEST:
            return {}, set()
        with_it = {(*row, member) for row in documents for member in members}
        documents = with_it if name in required else documents | with_it
    told = {
        "type": "object",
        "properties": {name: part for name, (part, _) in parts.items()},
        "required": required,
        "additionalProperties": False,
    }
    return told, {"{" + ",".join(row) + "}" for row in documents}


def vocabulary(rng: random.Random) -> tf.Vocabulary:
    """Single bytes, some pieces, one without bytes, one special, an end, in any order."""
    tokens = LETTERS + [piece.encode() for piece in rng.sample(PIECES, 10)]
    rng.shuffle(tokens)
    places = sorted(rng.sample(range(len(tokens)), 2))
    tokens.insert(places[0], b"")
    special = [len(tokens), len(tokens) + 1]
    return tf.Vocabulary([*tokens, b"<pad>", b"</s>"], eos=special[1:], special=special)


def drawn(rng: random.Random) -> tuple[dict[str, Any], Language]:
    """A certificate of a random constraint along a random text of it, or the beginning of one."""
    grammar, language = rng.choice([of_regex, of_words, of_gbnf, of_schema])(rng)
    tokens, words = list[int](), vocabulary(rng)
    automaton = grammar.compile(words)
    state = automaton.start
    for _ in range(rng.randint(0, 12)):
        choices = [token for token in automaton.allowed_tokens(state).tolist() if token not in words.eos]
        if not choices:
            break
        tokens.append(rng.choice(choices))
        state = automaton.advance(state, tokens[-1])
    # as a file has it
    return json.loads(json.dumps(tf.engine.certify(grammar, words, tokens))), language


def is_true(certificate: dict[str, Any], language: Language) -> bool:
    """Whether each claim holds, by docs/certificates.md."""
    try:
        return _is_true(certificate, language)
    except (KeyError, TypeError, ValueError, IndexError):
        return False


def _is_true(certificate: dict[str, Any], language: Language) -> bool:
    told, states = certificate["vocabulary"], certificate["states"]
    if len(certificate) != 7 or "constraint" not in certificate:
        return False
    tokens = [base64.b64decode(token, validate=True) for token in told["tokens"]]
    data = b"".join(len(token).to_bytes(4, "little") + token for token in tokens)
    for numbers in (told["end"], told["special"]):
        data += b"".join(number.to_bytes(4, "little") for number in [len(numbers), *numbers])
    text, positions = certificate["text"], certificate["positions"]
    if hashlib.sha256(data).hexdigest() != told["sha256"] or len(positions) != len(text) + 1:
        return False
    if {*positions} != set(range(len(states))) or (certificate["format"], certificate["version"]) != (
        "tokenform certificate",
        1,
    ):
        return False
    texts = {n for n, token in enumerate(tokens) if token and n not in {*told["end"], *told["special"]}}
    before = b""
    for place, number in enumerate(positions):
        allowed = _holds(states[number], before, tokens, texts, language)
        if allowed is None or (place < len(text) and text[place] not in allowed):
            return False
        if place < len(text):
            before += tokens[text[place]]
    return True


def _holds(
    state: dict[str, Any], before: bytes, tokens: list[bytes], texts: set[int], language: Language
) -> set[int] | None:
    """The tokens allowed in a state after these bytes, where its claims hold."""
    if state["end"] is not (language(before) is True) or set(state) != {"end", "allowed", "refused"}:
        return None
    told: list[int] = []
    allowed = set[int]()
    for ranges, witness in state["allowed"]:
        ids = [number for first, last in ranges for number in range(first, last + 1)]
        told += ids
        allowed.update(ids)
        if not texts.issuperset(witness) or ids != sorted(ids) or any(first > last for first, last in ranges):
            return None
        rest = b"".join(tokens[token] for token in witness)
        if not all(token in texts and language(before + tokens[token] + rest) is True for token in ids):
            return None
    for ranges, readable in state["refused"]:
        ids = [number for first, last in ranges for number in range(first, last + 1)]
        told += ids
        if ids != sorted(ids) or any(first > last for first, last in ranges):
            return None
        for token in ids:
            piece = tokens[token] if token in texts else b""
            fits = [language(before + piece[: n + 1]) is not None for n in range(len(piece))]
            if not fits or all(fits) or fits.index(False) != readable:
                return None
    return allowed if sorted(told) == sorted(texts) else None


def mutations(rng: random.Random, true: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each field changed in each way, at a random place; in random order."""
    size, text = len(true["vocabulary"]["tokens"]), json.dumps(true)

    def groups(c: dict[str, Any], kind: str) -> list[Any]:
        return rng.choice([state[kind] for state in c["states"] if state[kind]])

    def state(c: dict[str, Any]) -> dict[str, Any]:
        return rng.choice(c["states"])

    def moved(c: dict[str, Any]) -> None:
        here = state(c)
        source, target = rng.sample([*here["allowed"], *here["refused"]], 2)
        token = _taken(rng, source)
        target[0][:] = _with(target[0], token)
        for kind in ("allowed", "refused"):
            here[kind] = [group for group in here[kind] if group[0]]

    def hash_digit(c: dict[str, Any]) -> None:
        digits = list(c["vocabulary"]["sha256"])
        digits[rng.randrange(64)] = rng.choice("0123456789abcdef")
        c["vocabulary"]["sha256"] = "".join(digits)

    def token_bytes(c: dict[str, Any]) -> None:
        c["vocabulary"]["tokens"][rng.randrange(size)] = base64.b64encode(rng.choice(LETTERS)).decode()

    def witness(c: dict[str, Any]) -> None:
        way = rng.choice(groups(c, "allowed"))[1]
        at = rng.randrange(len(way) + 1)
        way[at : at + rng.randrange(2)] = [rng.randrange(size)] * rng.randrange(2)

    def step_dropped(c: dict[str, Any]) -> None:
        at = rng.randrange(len(c["text"]))
        del c["text"][at], c["positions"][at + rng.randrange(2)]

    def another_state(c: dict[str, Any]) -> None:
        c["positions"][rng.randrange(len(c["positions"]))] = rng.randrange(len(c["states"]))

    def readable(c: dict[str, Any]) -> None:
        rng.choice(groups(c, "refused"))[1] += rng.choice([-1, 1])

    changes: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
        ("a token taken from a mask", lambda c: _taken(rng, rng.choice(groups(c, "allowed")))),
        ("a token taken from the refused", lambda c: _taken(rng, rng.choice(groups(c, "refused")))),
        ("a token moved", moved),
        ("a class dropped", lambda c: groups(c, rng.choice(["allowed", "refused"])).pop()),
        ("a witness changed", witness),
        ("a byte of failure moved", readable),
        ("an end moved", lambda c: (lambda s: s.update(end=not s["end"]))(state(c))),
        ("a token of the text changed", lambda c: c["text"].__setitem__(-1, rng.randrange(size))),
        ("a step dropped", step_dropped),
        ("a state dropped", lambda c: c["states"].pop(rng.randrange(len(c["states"])))),
        ("a position of another state", another_state),
        ("a hash changed", hash_digit),
        ("a token's bytes changed", token_bytes),
        ("another end", lambda c: c["vocabulary"].update(end=[rng.randrange(size)])),
        ("another special token", lambda c: c["vocabulary"]["special"].append(rng.randrange(size))),
        ("another version", lambda c: c.update(version=2)),
        ("a field dropped", lambda c: c.pop(rng.choice(sorted(c)))),
    ]
    for name, change in rng.sample(changes, len(changes)):
        other = json.loads(text)
        try:
            change(other)
        except (IndexError, ValueError):
            continue
        if other != true:
            yield name, other


def _taken(rng: random.Random, group: list[Any]) -> int:
    """A token out of a class."""
    first, last = pair = rng.choice(group[0])
    token: int = rng.randint(first, last)
    parts = [part for part in ([first, token - 1], [token + 1, last]) if part[0] <= part[1]]
    at = group[0].index(pair)
    group[0][at : at + 1] = parts
    return token


def _with(ranges: list[list[int]], token: int) -> list[list[int]]:
    return sorted([*ranges, [token, token]])


def verdict(certificate: dict[str, Any]) -> bool | None:
    try:
        check(certificate)
    except Unproven:
        return False
    except CannotCheck:
        return None
    return True


def run(
    true: int, mutated: int, seed: int = 0, first: int = 0
) -> Iterator[tuple[int, Counter[str], list[str]]]:
    """After each draw: its number, counts by kind until now, and what was judged wrong.

    A draw has a generator of its own, by its number: a run goes on where another ended."""
    counts, wrong = Counter[str](), list[str]()
    for number in count(first):
        judge_one(random.Random(f"{seed} {number}"), -(-mutated // true), counts, wrong)
        yield number, counts, wrong
        if counts["true, accepted"] >= true and refused(counts) >= mutated:
            return


def refused(counts: Counter[str]) -> int:
    return sum(n for kind, n in counts.items() if kind.startswith("-"))


def judge_one(rng: random.Random, mutated: int, counts: Counter[str], wrong: list[str]) -> None:
    """A drawn certificate, and so many mutations of it."""
    certificate, language = drawn(rng)
    told = f"{certificate['constraint']} {certificate['text']}"
    if not is_true(certificate, language):
        wrong.append(f"the engine's is not true: {told}")
    elif verdict(certificate) is not True:
        wrong.append(f"true, not accepted: {told}")
    else:
        counts["true, accepted"] += 1
    for kind, other in islice(mutations(rng, certificate), mutated):
        meant = language
        if rng.random() < 0.05:
            kind, (another, meant) = "another constraint", drawn(rng)
            other = {**certificate, "constraint": another["constraint"]}
        if is_true(other, meant):
            counts["mutated, still true, accepted"] += 1
            if verdict(other) is not True:
                wrong.append(f"{kind}, still true, not accepted: {told}")
        elif verdict(other) is not False:
            wrong.append(f"{kind}, accepted: {told}")
        else:
            counts[f"- {kind}, refused"] += 1
