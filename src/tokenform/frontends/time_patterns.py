"""Dates, times and durations as pydantic reads and writes them, between bounds, as patterns.

Purpose: `datetime` with and without a zone, `Field(ge=date(2024, 1, 1))`, `timedelta` up to an hour: in the
masks.
Invariant: what a pattern matches is read, and lies within the bounds, but for one case: an offset
other than Z against a bound with a zone compares instants, which a pattern over the clock's digits bounds
by a day. Whatever pydantic writes within the bounds matches.
Source: pydantic's "Date and time types"; ISO 8601 durations with years of 365 days and months of 30, as it
has them.
Rejected: the core's formats (RFC 3339's `date-time` asks for an offset, and has leap seconds and fractions
of any length, which Python has not).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence

from tokenform.frontends.text_ranges import (
    NEVER,
    above,
    below,
    either,
    fraction_at_least,
    fraction_at_most,
    integers,
    literal,
    shape,
)

_LEAP = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
DAY = (
    "(?!0000)(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    rf"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP}-02-29)"
)
"""Days of Python's calendar, which has no year 0."""
_FRACTION = r"(?:\.[0-9]{1,6})?"
_SECONDS = rf"(?::[0-5][0-9]{_FRACTION})?"
CLOCK = f"(?:[01][0-9]|2[0-3]):[0-5][0-9]{_SECONDS}"
_OFFSET = "[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]"
Zone = str
"""Which zones a text has: "any", "naive" (none) or "aware" (one)."""
_TICK = datetime.timedelta(microseconds=1)
_DAY_LENGTH = datetime.timedelta(days=1)
_UNITS = {"Y": 365 * 86_400_000_000, "M": 30 * 86_400_000_000, "W": 7 * 86_400_000_000, "D": 86_400_000_000}
_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000
_CLOCK_LONGEST = 2**32 * _SECOND - 1  # of hours, minutes and seconds, to pydantic's reader
_LONGEST = datetime.timedelta.max // _TICK


def dates(low: datetime.date | None, high: datetime.date | None) -> str:
    """Days between two, both included."""
    lower, upper = (None if bound is None else bound.isoformat() for bound in (low, high))
    bounds = _bounded(lower, upper, _line)
    return NEVER if bounds is None else bounds + DAY


def datetimes(low: datetime.datetime | None, high: datetime.datetime | None, zone: Zone) -> str:
    """Points in time between two, both included; a bound with a zone other than UTC counts as UTC's."""
    return _with_zone(low, high, zone, f"{DAY}[Tt ]{CLOCK}")


def times(low: datetime.time | None, high: datetime.time | None, zone: Zone) -> str:
    """Times of a day between two, both included; see `datetimes`."""
    day = datetime.date(2000, 1, 1)

    def placed(time: datetime.time | None) -> datetime.datetime | None:
        return None if time is None else datetime.datetime.combine(day, time)

    return _with_zone(placed(low), placed(high), zone, CLOCK, only_clock=True)


def written_moments(zone: Zone, *, day: bool) -> str:
    """Moments, or times of a day, whose seconds are always written."""
    clock = CLOCK.removesuffix("?")
    ends = ([""] if zone != "aware" else []) + (["[Zz]", _OFFSET] if zone != "naive" else [])
    return (f"{DAY}[Tt ]" if day else "") + clock + f"(?:{'|'.join(ends)})"


def plain_durations() -> str:
    """Durations of days, hours, minutes and seconds, in this order, within a timedelta."""
    count, rest = "[0-9]{1,6}", _seconds(0, _UNITS["D"] - 1)
    clock = f"T(?=.)(?:{count}H)?(?:{count}M)?(?:{count}{_FRACTION}S)?"
    return either(
        [
            f"[+-]?P(?=.)(?:[0-9]{{1,8}}D)?(?:{clock})?",
            "[+-]?P[0-9]{9}D",
            f"P[0-9]{{9}}DT{rest}S",
            f"-P[0-8][0-9]{{8}}DT{rest}S",
        ]
    )


def _with_zone(
    low: datetime.datetime | None,
    high: datetime.datetime | None,
    zone: Zone,
    every: str,
    *,
    only_clock: bool = False,
) -> str:
    aware = any(bound is not None and bound.tzinfo is not None for bound in (low, high))
    walls = [bound and bound.replace(tzinfo=None) for bound in (low, high)]
    instants = [
        bound and (bound.replace(tzinfo=None) - (bound.utcoffset() or datetime.timedelta()))
        for bound in (low, high)
    ]
    parts = []

    def add(bounds: Sequence[datetime.datetime | None], end: str) -> None:
        lower, upper = (None if bound is None else _stamp(bound, only_clock) for bound in bounds)
        found = _bounded(lower, upper, _clock_line)
        if found is not None:
            parts.append(f"{found}{every}{end}")

    if zone != "aware":
        add(walls, "")
    if zone != "naive":
        if not aware:
            add(walls, f"(?:[Zz]|{_OFFSET})")
        else:
            add(instants, "[Zz]")
            add([None, None] if only_clock else _widened(*instants), _OFFSET)
    return either(parts)


def _widened(
    low: datetime.datetime | None, high: datetime.datetime | None
) -> tuple[datetime.datetime | None, datetime.datetime | None]:
    """Bounds a day apart, or none where the calendar ends."""
    try:
        low = low and low - _DAY_LENGTH
    except OverflowError:
        low = None
    try:
        high = high and high + _DAY_LENGTH
    except OverflowError:
        high = None
    return low, high


def _stamp(bound: datetime.datetime, only_clock: bool) -> str:
    text = bound.isoformat(timespec="microseconds")
    return text.partition("T")[2] if only_clock else text


def _bounded(low: str | None, high: str | None, line: object) -> str | None:
    """Lookaheads for two bounds; None where nothing is between them."""
    if low is not None and high is not None and low > high:
        return None
    assert callable(line)
    return "".join(f"(?={line(bound, sign)})" for bound, sign in ((low, 1), (high, -1)) if bound is not None)


def _line(text: str, sign: int) -> str:
    return either([literal(text), above(text) if sign > 0 else below(text)]) + "(?![0-9])"


def _clock_line(text: str, sign: int) -> str:
    """Texts from a moment on, or up to it: `[day]T]hh:mm[:ss[.f]]`, read as far as the digits go."""
    day, mark, clock = text.rpartition("T")
    minute, second, micro = clock[:5], clock[6:8], clock[9:]
    between = "[Tt ]" if mark else ""
    tail = r"(?![0-9:.])"
    same = literal(day) + between + literal(minute)
    if sign > 0:
        beside = [above(day) + between + shape(minute)] if mark else []
        beside.append(literal(day) + between + above(minute))
        later = f":(?:{above(second)}{_FRACTION}|{second}\\.{fraction_at_least(micro, 6)})"
        if micro == "000000":
            later = f":(?:{above(second)}{_FRACTION}|{second}{_FRACTION})"
            if second == "00":
                later = f"(?:{later})?"
    else:
        beside = [below(day) + between + shape(minute)] if mark else []
        beside.append(literal(day) + between + below(minute))
        less = fraction_at_most(micro, 6)
        later = f"(?::(?:{below(second)}{_FRACTION}|{second}(?:\\.{less})?))?"
    return either([either(beside) + _SECONDS + tail, same + later + tail])


# ---- durations ---------------------------------------------------------------------------------------


def durations(low: datetime.timedelta | None, high: datetime.timedelta | None) -> str:
    """Durations between two, both included.

    Without bounds every count of a unit may stand (`PT90M30S`); between bounds a smaller unit stays below the
    next larger one (`PT1H30M30S`, `P400DT2H`, `P1Y35D`), or one unit stands alone (`PT90M`, `P2W`).
    """
    least = -_LONGEST if low is None else low // _TICK
    most = _LONGEST if high is None else high // _TICK
    parts = []
    if least <= most:
        if most >= 0:
            parts.append(_positive(max(least, 0), most))
        if least < 0:  # "-P0D" is less than no time to pydantic
            parts.append("-" + _positive(max(-most, 1), min(-least, _LONGEST)))
    if low is None and high is None:
        count = "[0-9]{1,6}"
        day = "".join(f"(?:{count}{unit})?" for unit in "YMWD")
        parts.append(f"-?P(?=.){day}(?:T(?=.)(?:{count}H)?(?:{count}M)?(?:{count}(?:\\.[0-9]{{1,6}})?S)?)?")
    return either(parts)


def _positive(low: int, high: int) -> str:
    """Durations of so many microseconds."""
    day, most = _UNITS["D"], min(high, _CLOCK_LONGEST)
    parts = [
        "P(?=.)" + _levels([("D", day)], low, high),
        "P(?=.)" + _levels([("Y", _UNITS["Y"]), ("D", day)], low, high),
    ]
    if low <= most:
        parts.append("PT" + _seconds(low, most) + "S")
    parts += [f"P{_counted(low, high, size)}{unit}" for unit, size in _UNITS.items()]
    parts += [f"PT{_counted(low, most, size)}{unit}" for unit, size in (("H", _HOUR), ("M", _MINUTE))]
    return either(part for part in parts if NEVER not in part)


def _counted(low: int, high: int, unit: int) -> str:
    return integers(-(-low // unit), high // unit)


def _levels(units: Sequence[tuple[str, int]], low: int, high: int) -> str:
    """Counts of these units of the date, and the time of the rest; nothing stands for zero."""
    if not units:
        time = _clock_levels([("H", _HOUR), ("M", _MINUTE)], low, high)
        return f"(?:T(?=.){time}){'?' if low == 0 else ''}"
    (name, unit), rest = units[0], units[1:]
    return _level(name, unit, low, high, lambda a, b: _levels(rest, a, b))


def _clock_levels(units: Sequence[tuple[str, int]], low: int, high: int) -> str:
    if not units:
        seconds = f"(?:{_seconds(low, high)}S)"
        return seconds + "?" if low == 0 else seconds
    (name, unit), rest = units[0], units[1:]
    return _level(name, unit, low, high, lambda a, b: _clock_levels(rest, a, b))


def _level(name: str, unit: int, low: int, high: int, rest: Callable[[int, int], str]) -> str:
    """A count of a unit, and below it what is left."""
    first, last = low // unit, high // unit
    if first == last:
        return _count(first, first, name) + rest(low % unit, high % unit)
    parts, start, end = [], first, last
    if low % unit:
        parts.append(_count(first, first, name) + rest(low % unit, unit - 1))
        start += 1
    if high % unit != unit - 1:
        parts.append(_count(last, last, name) + rest(0, high % unit))
        end -= 1
    if start <= end:
        parts.append(_count(start, end, name) + rest(0, unit - 1))
    return either(parts)


def _count(low: int, high: int, name: str) -> str:
    """A count; zero is also left out."""
    return f"(?:{integers(low, high)}{name})" + ("?" if low == 0 else "")


def _seconds(low: int, high: int) -> str:
    """Seconds with a fraction."""
    (first, lower), (last, upper) = divmod(low, _SECOND), divmod(high, _SECOND)
    from_first = f"\\.{fraction_at_least(f'{lower:06d}', 6)}" if lower else _FRACTION
    to_last = f"(?:\\.{fraction_at_most(f'{upper:06d}', 6)})?"
    if first == last:
        return f"{first}(?={from_first}(?![0-9.])){to_last}"
    parts = []
    if lower:
        parts.append(f"{first}{from_first}")
        first += 1
    if upper != _SECOND - 1:
        parts.append(f"{last}{to_last}")
        last -= 1
    if first <= last:
        parts.append(integers(first, last) + _FRACTION)
    return either(parts)


__all__ = ["CLOCK", "DAY", "dates", "datetimes", "durations", "times"]
