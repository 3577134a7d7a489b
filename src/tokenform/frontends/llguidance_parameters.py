"""Parameters of llguidance's rules: the number that a rule is given and passes on, and when a part stands.

Purpose: `perm::_ : "a" perm::set_bit(0) %if bit_clear(0)`: lists that repeat no element, in a few lines.
Invariant: each function says what docs/parametric.md gives it; numbers have 64 bits, comparisons no sign.
Complexity: a call is constant; the rules of a grammar are written out for each number that is reached
(`llguidance.MOST_INSTANCES`).
Source: docs/parametric.md of guidance-ai/llguidance.
Rejected: numbers that are carried while a text is read (a context would hold them, and no two be the same).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tokenform.frontends.llguidance_words import Words

BITS = 64
_ALL = (1 << BITS) - 1

Number = Callable[[int], int]
Test = Callable[[int], bool]


@dataclass(frozen=True)
class Parameter:
    """A number that is passed to a rule.  `needs`: it is made of the rule's own."""

    of: Number
    needs: bool


@dataclass(frozen=True)
class PartTest:
    """Whether a part stands.  `needs`: it asks for the rule's own number."""

    holds: Test
    needs: bool


def read_parameter(reader: Words) -> Parameter:
    """What stands behind `::` where a rule is named."""
    if reader.next.kind == "number":
        value = _number(reader, _ALL)
        return Parameter(lambda _: value, False)
    if reader.take("_"):
        return Parameter(lambda p: p, True)
    token = reader.expect("name")
    reader.expect("(")
    made: Number
    if token.text in ("set_bit", "clear_bit"):
        bit = 1 << _number(reader, BITS - 1)
        made = (lambda p: p | bit) if token.text == "set_bit" else (lambda p: p & ~bit)
    elif token.text in ("bit_and", "bit_or"):
        other = _number(reader, _ALL)
        made = (lambda p: p & other) if token.text == "bit_and" else (lambda p: p | other)
    elif token.text in ("incr", "decr"):
        low, high = _range(reader)
        mask, one = _mask(low, high), 1 << low
        if token.text == "incr":
            made = lambda p: p if p & mask == mask else p + one  # noqa: E731
        else:
            made = lambda p: p if not p & mask else p - one  # noqa: E731
    else:
        raise reader.mistake(f"there is no function {token.text} of parameters", token.at)
    reader.expect(")")
    return Parameter(made, True)


_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "eq": int.__eq__,
    "ne": int.__ne__,
    "lt": int.__lt__,
    "le": int.__le__,
    "gt": int.__gt__,
    "ge": int.__ge__,
}


def read_condition(reader: Words) -> PartTest:
    """What stands behind `%if`."""
    token = reader.expect("name")
    name, counted = token.text, token.text.startswith("bit_count_")
    if name == "true":
        if reader.take("("):
            reader.expect(")")
        return PartTest(lambda _: True, False)
    reader.expect("(")
    made: Any
    if name in ("and", "or", "not"):
        made = _joined(reader, name)
    elif name in ("bit_clear", "bit_set"):
        bit, wanted = 1 << _number(reader, BITS - 1), name == "bit_set"
        made = PartTest(lambda p: bool(p & bit) == wanted, True)
    elif name in ("is_ones", "is_zeros"):
        low, high = _range(reader)
        mask = _mask(low, high)
        whole = mask if name == "is_ones" else 0
        made = PartTest(lambda p: p & mask == whole, True)
    elif name.removeprefix("bit_count_") in _COMPARED:
        compare = _COMPARED[name.removeprefix("bit_count_")]
        low, high = _range(reader)
        mask = _mask(low, high)
        reader.expect(",")
        value = _number(reader, _ALL)
        if counted:
            made = PartTest(lambda p: compare((p & mask).bit_count(), value), True)
        else:
            made = PartTest(lambda p: compare((p & mask) >> low, value), True)
    else:
        raise reader.mistake(f"there is no condition {name}", token.at)
    reader.expect(")")
    return made  # type: ignore[no-any-return]


def _joined(reader: Words, name: str) -> PartTest:
    reader.enter()
    first = read_condition(reader)
    one = first.holds
    if name == "not":
        made = PartTest(lambda p: not one(p), first.needs)
    else:
        reader.expect(",")
        second = read_condition(reader)
        other, needs = second.holds, first.needs or second.needs
        if name == "and":
            made = PartTest(lambda p: one(p) and other(p), needs)
        else:
            made = PartTest(lambda p: one(p) or other(p), needs)
    reader.leave()
    return made


def _mask(low: int, high: int) -> int:
    return (1 << high) - (1 << low)


def _range(reader: Words) -> tuple[int, int]:
    """The bits of `_` or `[low:high]`."""
    if reader.take("_"):
        return 0, BITS
    at = reader.expect("[").at
    low = _number(reader, BITS - 1)
    reader.expect(":")
    high = _number(reader, BITS)
    reader.expect("]")
    if high <= low:
        raise reader.mistake("the last bit of the range is not behind its first", at)
    return low, high


def _number(reader: Words, most: int) -> int:
    token = reader.expect("number")
    try:
        value = int(token.text, 16 if token.text[:2] in ("0x", "0X") else 10)
    except ValueError:
        value = -1
    if not 0 <= value <= most:
        raise reader.mistake(f"expected a whole number from 0 to {most}", token.at)
    return value
