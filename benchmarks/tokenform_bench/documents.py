"""Writing a JSON document in the spellings that JSON allows.

Purpose: the judges write each document compact, spaced, indented, with keys shuffled, or re-spelled at random
(escapes, number spellings, whitespace), and expect the same verdict for all.
Invariant: every text parses back (`json.loads`) to a value equal to the document's; numbers keep their value
exactly (decimal, not binary).
Complexity: O(length of the text).
Source: RFC 8259 for the grammar of strings and numbers.
"""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

_SHORT = {
    '"': '\\"',
    "\\": "\\\\",
    "/": "\\/",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
STYLES = ("compact", "spaced", "indent")


def write(data: Any, style: str = "spaced") -> str:
    """The document as `json.dumps` writes it: "compact", "spaced" (its default) or "indent" (two columns)."""
    if style == "compact":
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(data, ensure_ascii=False, indent=2 if style == "indent" else None)


def shuffled(data: Any, rng: random.Random) -> Any:
    """The same document with the keys of each object in a random order."""
    if isinstance(data, dict):
        keys = list(data)
        rng.shuffle(keys)
        return {key: shuffled(data[key], rng) for key in keys}
    if isinstance(data, list):
        return [shuffled(item, rng) for item in data]
    return data


def has_lone_surrogate(data: Any) -> bool:
    """Whether some string of the document has a lone surrogate, which no UTF-8 text can spell raw."""
    return any("\ud800" <= char <= "\udfff" for char in json.dumps(data, ensure_ascii=False))


def respelled(
    data: Any, rng: random.Random, *, whitespace: bool = True, escapes: bool = True, numbers: bool = True
) -> str:
    """A random spelling of the document: keys shuffled, and whitespace, strings and numbers as JSON also
    allows them."""

    def gap() -> str:
        if not whitespace or rng.random() < 0.5:
            return ""
        return rng.choice((" ", "\n", "  ", "\n  ", "\r\n\t", "\t", "\n    "))

    def spell(node: Any) -> str:
        if isinstance(node, dict):
            keys = list(node)
            rng.shuffle(keys)
            members = (f"{gap()}{string(key)}{gap()}:{gap()}{spell(node[key])}{gap()}" for key in keys)
            return "{" + (",".join(members) or gap()) + "}"
        if isinstance(node, list):
            return "[" + (",".join(f"{gap()}{spell(item)}{gap()}" for item in node) or gap()) + "]"
        if isinstance(node, str):
            return string(node)
        if numbers and isinstance(node, (int, float)) and not isinstance(node, bool):
            return number(node, rng)
        return json.dumps(node)

    def string(text: str) -> str:
        return '"' + "".join(_character(char, rng if escapes else None) for char in text) + '"'

    return gap() + spell(data) + gap()


def _character(char: str, rng: random.Random | None) -> str:
    if rng is not None and rng.random() < 0.25:
        if char in _SHORT and rng.random() < 0.5:
            return _SHORT[char]
        units = char.encode("utf-16-be", "surrogatepass")
        digits = [f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2)]
        return "".join(d if rng.random() < 0.5 else "\\u" + d[2:].upper() for d in digits)
    if char in '"\\' or char < " ":
        return _SHORT.get(char, f"\\u{ord(char):04x}")
    return char


def number(value: int | float, rng: random.Random) -> str:
    """A spelling with the same decimal value: `1`, `1.0`, `1e0`, `10E-1`, `0.1e+1`."""
    canonical = json.dumps(value)
    exact = Decimal(canonical)
    kind = rng.randrange(4)
    if kind == 0 or not exact.is_finite() or len(canonical) > 20:
        return canonical
    sign, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    body, minus = "".join(map(str, digits)), "-" if sign or canonical.startswith("-") else ""
    if kind == 1 and -12 <= exponent <= 0:  # plain, with needless zeros
        plain = format(abs(exact), "f")
        return minus + (plain if "." in plain else plain + ".0") + "0" * rng.randrange(2)
    if kind == 2:  # all digits before the point, moved by the exponent
        return f"{minus}{body}{rng.choice('eE')}{_signed(exponent, rng)}"
    head, tail = body[0], body[1:]
    return f"{minus}{head}{'.' + tail if tail else ''}{rng.choice('eE')}{_signed(exponent + len(tail), rng)}"


def _signed(exponent: int, rng: random.Random) -> str:
    return f"+{exponent}" if exponent >= 0 and rng.random() < 0.5 else str(exponent)
