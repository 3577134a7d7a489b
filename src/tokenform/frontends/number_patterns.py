"""Decimals, and bytes in base64 or hexadecimal, as texts: patterns of what stays within a type's rules.

Purpose: pydantic writes a `Decimal` as a string, so its bounds and digits are rules about text.
Invariant: between bounds a decimal has an exponent only where Python writes one and no bound is near; every
other text of a value within the rules matches, with up to `MOST` digits on either side of the point.
Source: pydantic's "Decimal" constraints (trailing zeros behind the point do not count); RFC 4648.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tokenform.frontends.text_ranges import (
    NEVER,
    any_digits,
    either,
    fraction_above,
    fraction_at_least,
    fraction_at_most,
    integers,
)

MOST = 60
_DIGITS = rf"[+-]?(?:[0-9]{{1,{MOST}}}(?:\.[0-9]{{0,{MOST}}})?|\.[0-9]{{1,{MOST}}})"
DECIMAL = rf"{_DIGITS}(?:[eE][+-]?[0-9]{{1,3}})?"
"""Any decimal: no spaces, no underscores, no NaN."""
_TINY = "3(?:0[89]|1[0-9]|2[0-3])"  # negative exponents of one digit that is not 0
_LARGEST = rf"1(?:\.{fraction_at_most('7976931348623157', MOST)})?[eE]\+?308"
_LARGE = rf"[1-9](?:\.[0-9]{{1,{MOST}}})?[eE](?:[+-]?(?:2[5-9][0-9]|30[0-7])|-{_TINY})"
DOUBLE = (
    rf"(?:{_DIGITS}(?:[eE][+-]?(?:[0-9]{{1,2}}|1[0-9]{{2}}|2[0-4][0-9]))?"
    rf"|[+-]?(?:{_LARGE}|{_LARGEST}|5[eE]-324))"
)
"""Any decimal that a double holds, and above 0 where one digit stands before the point."""
_FRACTION = rf"(?:\.[0-9]{{1,{MOST}}})?"
_NEAR, _FAR = Decimal("1e-4"), Decimal(10) ** 10
_END = "(?![0-9.])"


def decimals(rules: Mapping[str, Any], *, doubles: bool = False) -> str:
    """Texts of decimals under `ge`, `gt`, `le`, `lt`, `max_digits`, `decimal_places` of a core schema.

    doubles: only those that a double holds, with the same sign: none becomes 0 or infinite.
    """
    if all(rules.get(name) is None for name in ("ge", "gt", "le", "lt", "max_digits", "decimal_places")):
        return DOUBLE if doubles else DECIMAL
    low, low_open = _tighter(rules.get("ge"), rules.get("gt"), 1)
    high, high_open = _tighter(rules.get("le"), rules.get("lt"), -1)
    digits = _digits(rules.get("max_digits"), rules.get("decimal_places"))
    parts = []
    if high is None or high >= 0:
        least = low if low is not None and low >= 0 else None
        parts.append(digits + _positive(least, low_open, high, high_open))
    if low is None or low <= 0:
        least = high.copy_negate() if high is not None and high <= 0 else None
        most = None if low is None else low.copy_negate()
        parts.append("-" + digits + _positive(least, high_open, most, low_open))
    if not digits:
        parts += _with_exponents(low, high, doubles)
    return either(part for part in parts if NEVER not in part)


def _with_exponents(low: Decimal | None, high: Decimal | None, doubles: bool) -> list[str]:
    """Values near zero and far from it, which Python writes with exponents, where no bound is among them."""
    large = "(?:[1-9][0-9]|[12][0-9]{2}|30[0-7])" if doubles else "[1-9][0-9]{1,2}"
    near = rf"[eE]-(?:0?[5-9]|{large}|{_TINY})" if doubles else rf"[eE]-(?:0?[5-9]|{large})"
    digits, parts = rf"[1-9](?:\.[0-9]{{1,{MOST}}})?", []
    far = rf"{digits}[eE]\+?{large}"
    far = f"(?:{far}|{_LARGEST})" if doubles else far
    for sign, least, most in (
        ("", low, high),
        ("-", None if high is None else -high, None if low is None else -low),
    ):
        if (least is None or least <= 0) and (most is None or most >= _NEAR):
            parts.append(f"{sign}{digits}{near}")
        if most is None and (least is None or least <= _FAR):
            parts.append(f"{sign}{far}")
    return parts


def _tighter(closed: Any, opened: Any, sign: int) -> tuple[Decimal | None, bool]:
    """The bound that holds of two, and whether it is excluded itself."""
    if opened is None or (closed is not None and (Decimal(closed) - Decimal(opened)) * sign > 0):
        return (None if closed is None else Decimal(closed)), False
    return Decimal(opened), True


def _positive(low: Decimal | None, low_open: bool, high: Decimal | None, high_open: bool) -> str:
    if low is not None and high is not None and (low > high or (low == high and (low_open or high_open))):
        return NEVER
    ahead = "" if low is None else f"(?={_from(low, low_open)}{_END})"
    return ahead + (
        f"(?:0|[1-9]{any_digits(0, MOST - 1)}){_FRACTION}" if high is None else _up_to(high, high_open)
    )


def _from(low: Decimal, opened: bool) -> str:
    whole, digits = _split(low)
    parts = [integers(whole + 1) + _FRACTION]
    fraction = (fraction_above if opened else fraction_at_least)(digits, MOST)
    if digits or opened:
        parts.append(f"{whole}\\.{fraction}")
    else:
        parts.append(f"{whole}{_FRACTION}")
    return either(parts)


def _up_to(high: Decimal, opened: bool) -> str:
    whole, digits = _split(high)
    parts = [integers(0, whole - 1) + _FRACTION] if whole else []
    if digits or not opened:
        fraction = fraction_at_most(digits, MOST, below_it=opened)
        parts.append(f"{whole}" if fraction == NEVER else f"{whole}(?:\\.{fraction})?")
    return either(parts)


def _split(value: Decimal) -> tuple[int, str]:
    whole, _, fraction = f"{abs(value):f}".partition(".")
    return int(whole), fraction.rstrip("0")


def _digits(most: int | None, places: int | None) -> str:
    """A lookahead for the digits that a decimal may have."""
    if most is None and places is None:
        return ""
    if most is None:
        assert places is not None
        return f"(?=[0-9]+{_places(min(places, MOST))}{_END})"
    if places is not None:
        return f"(?={_whole(most - places)}{_places(min(places, most))}{_END})"
    ways = [f"{_whole(most - fraction)}{_places(fraction)}" for fraction in range(min(most, MOST) + 1)]
    return f"(?={either(ways)}{_END})"


def _whole(digits: int) -> str:
    return f"(?:0|[1-9]{any_digits(0, digits - 1)})" if digits > 0 else "0"


def _places(most: int) -> str:
    zeros = f"0{{1,{MOST}}}"
    return rf"(?:\.(?:{any_digits(1, most)}0{{0,{MOST}}}|{zeros}))?" if most else rf"(?:\.{zeros})?"


def base64_texts(alphabet: str, least: int = 0, most: int | None = None) -> str:
    """Base64 of so many bytes, padded; bits that no byte has are zero."""
    letter, parts = f"[A-Za-z0-9{alphabet}]", []
    for rest, tail in enumerate(("", f"{letter}[AQgw]==", f"{letter}{{2}}[AEIMQUYcgkosw048]=")):
        low = max(-((rest - least) // 3), 0)
        high = "" if most is None else (most - rest) // 3
        if high == "" or int(high) >= low:
            parts.append(f"(?:{letter}{{4}}){{{low},{high}}}{tail}")
    return either(parts)


def hex_texts(least: int = 0, most: int | None = None) -> str:
    """Hexadecimal digits of so many bytes."""
    return f"(?:[0-9A-Fa-f]{{2}}){{{least},{'' if most is None else most}}}"
