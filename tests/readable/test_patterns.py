"""Patterns of numbers, times and addresses: by enumeration, by `ipaddress`, and by pydantic's own readers."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import itertools
import math
import random
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import AwareDatetime, Field, NaiveDatetime, TypeAdapter, ValidationError

from tokenform.frontends.network_patterns import ipv4_networks, ipv6_addresses, ipv6_networks
from tokenform.frontends.number_patterns import base64_texts, decimals, hex_texts
from tokenform.frontends.text_ranges import (
    fraction_above,
    fraction_at_least,
    fraction_at_most,
    integers,
    same_length,
    signed_integers,
)
from tokenform.frontends.time_patterns import dates, datetimes, durations, times

delta = datetime.timedelta
UTC = datetime.timezone.utc


def reads(adapter: TypeAdapter[Any], text: str) -> bool:
    try:
        adapter.validate_json(f'"{text}"')
    except ValidationError:
        return False
    return True


def bounded(base: Any, low: Any, high: Any) -> TypeAdapter[Any]:
    rules = {name: bound for name, bound in (("ge", low), ("le", high)) if bound is not None}
    return TypeAdapter(Annotated[base, Field(**rules)] if rules else base)


def test_whole_numbers_by_enumeration() -> None:
    for low, high in itertools.combinations_with_replacement([0, 1, 7, 9, 10, 11, 99, 100, 109, 250], 2):
        within, above, wide = integers(low, high), integers(low), same_length(f"{low:03d}", f"{high:03d}")
        for number in range(1200):
            assert bool(re.fullmatch(within, str(number))) == (low <= number <= high)
            assert bool(re.fullmatch(above, str(number))) == (low <= number)
            if number < 1000:
                assert bool(re.fullmatch(wide, f"{number:03d}")) == (low <= number <= high)


def test_signed_numbers_by_enumeration() -> None:
    for low, high in itertools.product([None, -101, -10, -1, 0, 1, 10, 101], repeat=2):
        pattern = signed_integers(low, high)
        for number in range(-120, 121):
            want = (low is None or low <= number) and (high is None or number <= high)
            assert bool(re.fullmatch(pattern, str(number))) == want, (low, high, number)
        assert not re.fullmatch(pattern, "-0")


def test_fractions_by_enumeration() -> None:
    texts = ["".join(t) for n in (1, 2, 3) for t in itertools.product("01259", repeat=n)]
    for bound in ["", *texts]:
        patterns = [
            fraction_at_least(bound, 3), fraction_above(bound, 3), fraction_at_most(bound, 3),
            fraction_at_most(bound, 3, below_it=True),
        ]  # fmt: skip
        limit = int(bound.ljust(3, "0"))
        for text in texts:
            value = int(text.ljust(3, "0"))
            want = [value >= limit, value > limit, value <= limit, value < limit]
            assert [bool(re.fullmatch(p, text)) for p in patterns] == want, (bound, text)


def moments(rng: random.Random) -> datetime.datetime:
    step = rng.choice([rng.randrange(10**7), rng.randrange(10**8) * 10**6, rng.randrange(10**6) * 6 * 10**7])
    return datetime.datetime(2024, 1, 1) + delta(microseconds=step * rng.choice([1, 1, 37]))


@pytest.mark.parametrize("kind", ["any", "naive", "aware"])
@pytest.mark.parametrize("zone", [None, UTC])
def test_moments_between_bounds_are_those_that_pydantic_takes(kind: str, zone: Any) -> None:
    rng = random.Random(f"{kind}{zone}")
    base = {"any": datetime.datetime, "naive": NaiveDatetime, "aware": AwareDatetime}[kind]
    offsets = ["", "", "Z"] + ([] if zone else ["+05:30", "-11:00"])
    for _ in range(60):
        ends = sorted([moments(rng), moments(rng)])
        low, high = (None if rng.random() < 0.2 else end.replace(tzinfo=zone) for end in ends)
        pattern, adapter = re.compile(datetimes(low, high, kind)), bounded(base, low, high)
        clock = re.compile(times(None, high and high.timetz(), kind))
        clocks = bounded(datetime.time, None, high and high.timetz())
        for _ in range(20):
            step = rng.choice([0, 1, -1, 10**6, -(10**6), 6 * 10**7, rng.randrange(-(10**13), 10**13)])
            moment = rng.choice(ends) + delta(microseconds=step)
            text = moment.isoformat()[: 16 if rng.random() < 0.2 else 99] + rng.choice(offsets)
            assert bool(pattern.fullmatch(text)) == reads(adapter, text), (low, high, text)
            if kind == "any":
                text = text[11:]
                assert bool(clock.fullmatch(text)) == reads(clocks, text), (high, text)


def test_days_between_bounds_are_those_that_pydantic_takes() -> None:
    rng = random.Random(4)
    for _ in range(100):
        ends = sorted([moments(rng).date(), moments(rng).date()])
        low, high = (None if rng.random() < 0.2 else end for end in ends)
        pattern, adapter = re.compile(dates(low, high)), bounded(datetime.date, low, high)
        for _ in range(20):
            text = (
                rng.choice(ends) + delta(days=rng.choice([0, 1, -1, rng.randrange(-900, 900)]))
            ).isoformat()
            assert bool(pattern.fullmatch(text)) == reads(adapter, text), (low, high, text)
    every = re.compile(dates(None, None))
    assert every.fullmatch("2024-02-29") and not every.fullmatch("2023-02-29")
    assert not every.fullmatch("0000-01-01")


def spelled(length: delta, rng: random.Random) -> str:
    """A duration as pydantic writes it, or with days alone, or in one unit."""
    whole = abs(length)
    seconds = whole.seconds + whole.days * 86400
    sign = "-" if length < delta(0) else ""
    fraction = f".{whole.microseconds:06d}".rstrip("0") if whole.microseconds else ""
    way = rng.randrange(4)
    if way == 0:
        return sign + rng.choice([f"PT{seconds}{fraction}S", f"PT{seconds // 60}M", f"P{seconds // 604800}W"])
    if way == 1 and whole.seconds:
        hours, rest = divmod(whole.seconds, 3600)
        minutes, rest = divmod(rest, 60)
        return f"{sign}P{whole.days}DT{hours}H{minutes}M{rest}{fraction}S"
    return TypeAdapter(delta).dump_json(length).decode().strip('"')


def test_durations_between_bounds_are_those_that_pydantic_takes() -> None:
    rng = random.Random(5)
    for _ in range(250):
        scale = rng.choice([1, 10**6, 6 * 10**7, 3600 * 10**6])
        ends = sorted(delta(microseconds=rng.randrange(-(10**7), 10**7) * scale) for _ in range(2))
        low, high = (None if rng.random() < 0.2 else end for end in ends)
        pattern, adapter = re.compile(durations(low, high)), bounded(delta, low, high)
        for _ in range(20):
            step = rng.choice([0, 0, 1, -1, 10**6, -(10**6), 6 * 10**7, rng.randrange(-(10**16), 10**16)])
            text = spelled(rng.choice(ends) + delta(microseconds=step), rng)
            if re.search("[1-9]", text) or text[0] != "-":  # no "-P0D"
                assert bool(pattern.fullmatch(text)) == reads(adapter, text), (low, high, text)
    every = re.compile(durations(None, None))
    for length in (delta.max, delta.min, delta(0), delta(days=400, hours=2), delta(seconds=1.5)):
        assert every.fullmatch(TypeAdapter(delta).dump_json(length).decode().strip('"'))
    assert every.fullmatch("PT90M30S") and not every.fullmatch("P") and not every.fullmatch("PT")


def test_decimals_within_rules_are_those_that_pydantic_takes() -> None:
    rng = random.Random(6)

    def number() -> Decimal:
        return Decimal(rng.randrange(-(10**4), 10**4) // 10 ** rng.randrange(4)) / 10 ** rng.randrange(4)

    for _ in range(600):
        rules: dict[str, Any] = {name: number() for name in ("ge", "gt", "le", "lt") if rng.random() < 0.35}
        if rng.random() < 0.3:
            rules["max_digits"] = rng.randrange(1, 6)
        if rng.random() < 0.3:
            rules["decimal_places"] = rng.randrange(min(4, rules.get("max_digits", 9) + 1))
        if not rules:
            continue
        pattern, adapter = re.compile(decimals(rules)), TypeAdapter(Annotated[Decimal, Field(**rules)])
        for _ in range(20):
            near = rng.choice([bound for bound in rules.values() if isinstance(bound, Decimal)] or [number()])
            value = rng.choice([number(), near + rng.choice([0, 1, -1, Decimal("0.01"), Decimal("-0.01")])])
            text = f"{value:f}" + rng.choice(["", "0", "00"] if "." in f"{value:f}" else ["", ".0"])
            assert bool(pattern.fullmatch(text)) == reads(adapter, text), (rules, text)


def test_bytes_are_counted_in_base64_and_hexadecimal() -> None:
    for least, most in itertools.product(range(8), [None, *range(9)]):
        if most is not None and most < least:
            continue
        for size in range(12):
            data = random.Random(size).randbytes(size)
            want = least <= size and (most is None or size <= most)
            text = base64.urlsafe_b64encode(data).decode()
            assert bool(re.fullmatch(base64_texts("_-", least, most), text)) == want
            assert bool(re.fullmatch(hex_texts(least, most), data.hex())) == want


def made_by(make: Callable[[str], Any], text: str) -> bool:
    try:
        make(text)
    except ValueError:
        return False
    return True


def test_networks_are_those_of_ipaddress() -> None:
    rng, pattern = random.Random(7), re.compile(ipv4_networks())
    for _ in range(20_000):
        number = rng.getrandbits(32) & (-1 << rng.randrange(33)) & 0xFFFFFFFF
        text = f"{ipaddress.IPv4Address(number)}/{rng.randrange(33)}"
        assert bool(pattern.fullmatch(text)) == made_by(ipaddress.IPv4Network, text), text
    assert pattern.fullmatch("10.0.0.1") and not pattern.fullmatch("10.0.0.0/33")


def groups(number: int, rng: random.Random) -> str:
    """An IPv6 address in one of its spellings."""
    parts = [(number >> (112 - 16 * place)) & 0xFFFF for place in range(8)]
    text = [f"{part:x}" if rng.random() < 0.7 else f"{part:04X}" for part in parts]
    runs = [(a, b) for a in range(8) for b in range(a + 1, 9) if not any(parts[a:b])]
    if not runs or rng.random() < 0.2:
        return ":".join(text)
    start, end = rng.choice(runs)
    return f"{':'.join(text[:start])}::{':'.join(text[end:])}"


def test_networks_of_version_6_are_those_of_ipaddress() -> None:
    rng, pattern, address = random.Random(8), re.compile(ipv6_networks()), re.compile(ipv6_addresses())
    for _ in range(20_000):
        length = rng.randrange(129)
        number = 0
        for _ in range(8):
            number = number << 16 | rng.choice([0, 0, 1, 0x8000, rng.getrandbits(16)])
        if rng.random() < 0.6:
            number = number >> (128 - length) << (128 - length)
            number ^= 1 << (127 - length) if length < 128 and rng.random() < 0.3 else 0
        text = groups(number, rng)
        assert address.fullmatch(text)
        text += f"/{length}"
        assert bool(pattern.fullmatch(text)) == made_by(ipaddress.IPv6Network, text), text
    pieces = ["a", "12", "0", ":", "::", ":", ":", "1.2.3.4", "ffff:", "1:"]
    for _ in range(20_000):
        text = "".join(rng.choice(pieces) for _ in range(rng.randrange(1, 16)))
        assert bool(address.fullmatch(text)) == made_by(ipaddress.IPv6Address, text), text


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e308)
@example(-1.7976931348623157e308)
@example(5e-324)
@example(2.5e-323)
def test_a_double_is_one_of_the_doubles_and_has_its_sign(number: float) -> None:
    pattern = decimals({}, doubles=True)
    assert re.fullmatch(pattern, repr(number)), number


@given(st.from_regex(r"[1-9]\.[0-9]{1,9}e[+-]?3[0-3][0-9]", fullmatch=True))
@example("1.797693134862316e308")
@example("1.8e+308")
@example("1e309")
@example("1e-324")
def test_what_a_double_does_not_hold_is_none_of_the_doubles(text: str) -> None:
    if re.fullmatch(decimals({}, doubles=True), text):
        assert 0 < float(text) < math.inf
    else:
        assert float(text) in (0.0, math.inf) or "e-" in text
