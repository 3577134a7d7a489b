"""Numbers between bounds as patterns of their digits.

Purpose: what `Field(ge=…)` says about values that a document writes as text (dates, times, durations,
decimals, keys of mappings), for the masks.
Invariant: each function gives the body of a regular expression that matches exactly the texts that it
names, with the same meaning in ECMA-262 and Python.  Alternatives are grouped, so bodies may stand side by
side.
Complexity: linear in the digits for texts of one length, quadratic for numbers.
Rejected: comparing in a validator alone (a model would be asked again and again for a date that no mask
guides).
"""

from __future__ import annotations

from collections.abc import Iterable

NEVER = r"[^\s\S]"
"""Matches nothing."""
_DIGITS = "0123456789"


def either(parts: Iterable[str]) -> str:
    """One of several bodies."""
    possible = [part for part in dict.fromkeys(parts) if part != NEVER]
    return NEVER if not possible else possible[0] if len(possible) == 1 else f"(?:{'|'.join(possible)})"


def any_digits(count: int, most: int | None = None) -> str:
    """So many digits, or from so many up to most."""
    if most is None or most == count:
        return "" if count == 0 else "[0-9]" if count == 1 else f"[0-9]{{{count}}}"
    return f"[0-9]{{{count},{most}}}"


def shape(text: str) -> str:
    """Texts with digits where this one has digits."""
    made, run = "", 0
    for char in text:
        if char in _DIGITS:
            run += 1
        else:
            made, run = made + any_digits(run) + _literal(char), 0
    return made + any_digits(run)


def above(text: str) -> str:
    """Texts of this shape that come after it."""
    return _beside(text, 1)


def below(text: str) -> str:
    """Texts of this shape that come before it."""
    return _beside(text, -1)


def _beside(text: str, sign: int) -> str:
    parts = []
    for place, char in enumerate(text):
        if char in _DIGITS:
            low, high = (int(char) + 1, 9) if sign > 0 else (0, int(char) - 1)
            if low <= high:
                parts.append(literal(text[:place]) + _span(low, high) + shape(text[place + 1 :]))
    return either(parts)


def literal(text: str) -> str:
    """The text itself."""
    return "".join(map(_literal, text))


def _literal(char: str) -> str:
    return "\\" + char if char in r"\.+*?()[]{}|^$/" else char


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"[{low}-{high}]"


def same_length(low: str, high: str) -> str:
    """Texts between two of one shape, both included."""
    if low > high:
        return NEVER
    place = next((n for n, (a, b) in enumerate(zip(low, high, strict=True)) if a != b), None)
    if place is None:
        return literal(low)
    first, last = int(low[place]), int(high[place])
    lower, upper, rest = low[place + 1 :], high[place + 1 :], shape(low[place + 1 :])
    parts = []
    if all(char in "0" or char not in _DIGITS for char in lower):
        first -= 1  # every rest is above
    else:
        parts.append(f"{first}" + either([literal(lower), above(lower)]))
    whole = all(char in "9" or char not in _DIGITS for char in upper)
    last += whole
    if first + 1 <= last - 1:
        parts.append(_span(first + 1, last - 1) + rest)
    if not whole:
        parts.append(f"{last}" + either([literal(upper), below(upper)]))
    return literal(low[:place]) + either(parts)


def integers(low: int, high: int | None = None) -> str:
    """Whole numbers from `low` (not negative) up to `high`, without leading zeros."""
    if high is not None and high < low:
        return NEVER
    if high is None:
        width = len(str(low))
        return either([same_length(str(low), "9" * width), f"[1-9]{any_digits(width)}[0-9]*"])
    parts: list[str] = []
    full: list[int] = []  # widths of which every number is meant
    for width in range(len(str(low)), len(str(high)) + 1):
        least, most = 10 ** (width - 1) if width > 1 else 0, 10**width - 1
        if width > 1 and low <= least and most <= high:
            full.append(width)
        else:
            parts.append(same_length(str(max(low, least)), str(min(high, most))))
    if full:
        parts.append("[1-9]" + any_digits(full[0] - 1, full[-1] - 1))
    return either(parts)


def signed_integers(low: int | None, high: int | None) -> str:
    """Whole numbers within bounds, none of them written `-0`."""
    parts = []
    if high is None or high >= 0:
        parts.append(integers(max(low or 0, 0) if low is None or low >= 0 else 0, high))
    if low is None or low < 0:
        least = 1 if high is None or high >= 0 else -high
        parts.append("-" + integers(least, None if low is None else -low))
    return either(parts)


def fraction_at_least(digits: str, most: int) -> str:
    """Digits after a point, up to `most` of them: fractions that are not below `0.digits`."""
    significant = digits.rstrip("0")
    parts = [_higher(significant, most)]
    if len(significant) <= most:
        parts.append(significant + any_digits(0 if significant else 1, most - len(significant)))
    return either(parts)


def fraction_above(digits: str, most: int) -> str:
    """Fractions above `0.digits`; those that begin with its digits may be some digits longer."""
    significant = digits.rstrip("0")
    places_left = most - len(significant)
    longer = (
        [f"{significant}0{{0,{places_left - 1}}}[1-9]{any_digits(0, places_left)}"] if places_left > 0 else []
    )
    return either([_higher(significant, most), *longer])


def fraction_at_most(digits: str, most: int, *, below_it: bool = False) -> str:
    """Fractions not above `0.digits`; or below it."""
    significant, parts = digits.rstrip("0"), []
    for place, digit in enumerate(significant[:most]):
        if digit != "0":
            parts.append(significant[:place] + _span(0, int(digit) - 1) + any_digits(0, most - place - 1))
        if place:
            parts.append(significant[:place])
    if len(significant) <= most and not below_it:
        places_left = most - len(significant)
        parts.append(significant + (f"0{{{0 if significant else 1},{places_left}}}" if places_left else ""))
    return either(parts)


def _higher(significant: str, most: int) -> str:
    return either(
        significant[:place] + _span(int(digit) + 1, 9) + any_digits(0, most - place - 1)
        for place, digit in enumerate(significant[:most])
        if digit != "9"
    )
