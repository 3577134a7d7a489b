"""JSON texts as Python values, whatever their numbers and however deep they nest.

Purpose: `json.loads` raises a bare `ValueError` for an integer of more than 4,300 digits and a bare
`RecursionError` for deep nesting, and turns `1e400` into `inf`; what a grammar let through must not end so.
Invariant: a number that Python can hold comes back as what it says; every error is one of the library's.
Complexity: that of `json.loads`; quadratic, by large steps, in the digits of a huge integer.
"""

from __future__ import annotations

import json
import math
from typing import Any

from tokenform.errors import LimitExceeded, TokenformError

_STEP = 4_000  # digits that `int` reads at once, whatever limit the process has set above 640 * 6
_DIGITS = 100_000  # of an integer
_LONG = 1 << 18  # characters from which on `json` takes more than a millisecond


def read_json(text: str, *, name: str, kind: type[TokenformError]) -> Any:
    """The value of a JSON text.

    Args:
        text: any text.
        name: what messages call it ("the schema", "the document").
        kind: the error for a text that is not JSON.
    Raises:
        kind: it is not JSON; with line and column.
        LimitExceeded: it nests deeper than Python reads, or has a number beyond what Python holds.
    """

    def refused(constant: str) -> Any:
        raise kind(f"{name} is not JSON: {constant} is no number there.")

    try:
        return json.loads(text, parse_int=_integer, parse_float=_number, parse_constant=refused)
    except RecursionError:
        raise LimitExceeded(f"{name} is nested too deeply to be read in Python; flatten it.") from None
    except json.JSONDecodeError as error:
        message = f"{name} is not JSON: {error.msg} at line {error.lineno} column {error.colno}."
        raise kind(message, line=error.lineno, column=error.colno) from None


def loads(text: str) -> Any:
    """The value of a text that `json` wrote; other threads have their turn while a long one is read."""
    return json.loads(text) if len(text) < _LONG else json.loads(text, object_hook=_same)


def _same(members: dict[str, Any]) -> dict[str, Any]:
    # that it is a function of Python's is enough: before each the interpreter looks for waiting threads
    return members


def plain_integers(text: str) -> str:
    """The JSON text with every whole number as an integer of digits, compact.

    Raises:
        LimitExceeded: a number or the nesting is beyond what Python reads.
    """

    def number(written: str) -> Any:
        whole = _whole(written)
        return _number(written) if whole is None else whole

    try:
        return json.dumps(json.loads(text, parse_float=number))
    except (RecursionError, ValueError) as error:
        raise LimitExceeded(f"the document can't be read in Python: {error}.") from None


def _integer(text: str) -> int:
    if len(text) <= _STEP:
        return int(text)
    if len(text) > _DIGITS:
        raise LimitExceeded(
            f"an integer of {len(text)} digits is beyond what is read; {_DIGITS} are the most."
        )
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text)
    value = 0
    for start in range(0, len(digits), _STEP):
        piece = digits[start : start + _STEP]
        value = value * 10 ** len(piece) + int(piece)
    return sign * value


def _number(text: str) -> float | int:
    """The number; one that is too large for a float is an int where it is whole."""
    value = float(text)
    if math.isfinite(value):
        return value
    whole = _whole(text)
    if whole is None:
        raise LimitExceeded(f"the number {text[:40]} is beyond what Python holds; give it a maximum.")
    return whole


def _whole(text: str) -> int | None:
    """The whole number that a text with a point or an exponent stands for; None where it is none, or huge."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("-").lstrip("0")
    if not digits:
        return 0
    zeros = (int(exponent) if exponent and len(exponent) <= 9 else _DIGITS if exponent else 0) - len(fraction)
    if zeros < 0:
        kept, dropped = digits[:zeros], digits[zeros:]
        if dropped.strip("0") or len(digits) < -zeros:
            return None
        digits = kept or "0"
    elif zeros + len(digits) > _DIGITS:
        return None
    value = _integer(digits + "0" * max(zeros, 0))
    return -value if text.startswith("-") else value


def raw_json(text: str, start: int, *, kind: type[TokenformError]) -> int:
    """Where the JSON text that begins at `start` ends, blanks before it skipped.

    Raises:
        kind: no JSON begins there; with line and column in the whole text.
        LimitExceeded: it nests deeper than Python reads.
    """
    while text[start : start + 1] in (" ", "\t", "\n", "\r"):
        start += 1
    try:
        return _SCANNER.raw_decode(text, start)[1]
    except RecursionError:
        raise LimitExceeded("it is nested too deeply to be read in Python; flatten it.") from None
    except json.JSONDecodeError as error:
        raise kind(f"{error.msg}.", line=error.lineno, column=error.colno) from None


_SCANNER = json.JSONDecoder(parse_int=len, parse_float=len)  # only where it ends counts
