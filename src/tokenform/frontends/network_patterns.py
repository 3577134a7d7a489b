"""Addresses, networks and URLs as pydantic reads them, as patterns.

Purpose: `ipaddress`'s networks with every length of prefix, whose bits behind the prefix must be zero; URLs
with the hosts, users and ports that pydantic's reader takes.
Invariant: addresses and networks are exact but for IPv6's dotted tail and scope, which networks are written
without.  URLs are a little wide (a host may look like `xn--…` and be none): their reader is asked as
validators are.
Source: RFC 4291 §2.2, RFC 4632 §3.1; the URL Standard, "Host parsing".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tokenform.frontends.text_ranges import either, integers

OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = rf"{OCTET}(?:\.{OCTET}){{3}}"
IPV4_PREFIX = "(?:/(?:[12]?[0-9]|3[0-2]))?"
IPV6_PREFIX = "(?:/(?:[1-9]?[0-9]|1[01][0-9]|12[0-8]))?"
_GROUP = "[0-9A-Fa-f]{1,4}"
_ZERO = "0{1,4}"


def ipv4_networks() -> str:
    """Networks by their prefix; an address alone is one of 32 bits."""
    parts = []
    for length in range(33):
        whole, bits = divmod(length, 8)
        octets = [OCTET] * whole
        if bits:
            step = 1 << (8 - bits)
            octets.append(either(str(n) for n in range(0, 256, step)))
        octets += ["0"] * (4 - len(octets))
        parts.append(r"\.".join(octets) + (f"/{length}" if length < 32 else "(?:/32)?"))
    return either(parts)


def ipv6_addresses() -> str:
    """Eight groups, one run of them at most as `::`, the last two also as an IPv4 address."""
    parts = [f"(?:{_GROUP}:){{7}}{_GROUP}", f"(?:{_GROUP}:){{6}}{IPV4}"]
    for left in range(8):
        before = f"{_GROUP}(?::{_GROUP}){{{left - 1}}}" if left else ""
        groups_left = 7 - left
        after = [""]
        if groups_left >= 1:
            after.append(f"(?:{_GROUP}:){{0,{groups_left - 1}}}{_GROUP}")
        if groups_left >= 2:
            after.append(f"(?:{_GROUP}:){{0,{groups_left - 2}}}{IPV4}")
        parts.append(f"{before}::(?:{'|'.join(after)})")
    return either(parts)


def ipv6_networks() -> str:
    """Networks by their prefix, whose last bits are zero.

    Group k is the last that the prefix reaches into.  It is counted from the right where it stands behind
    `::` or there is none, else from the left; and where `::` swallows it, all that follows is zero.
    """
    parts = ["[0-9A-Fa-f:.]+(?:/128)?", "[0:]+/0"]
    for reached in range(1, 9):
        zeros = f"(?::{_ZERO}){{{8 - reached}}}"
        swallowed = f"(?:{_GROUP}(?::{_GROUP}){{0,{reached - 2}}})?" if reached > 1 else ""
        right, left = [], []
        for bits in range(1, 17):
            length = 16 * (reached - 1) + bits
            if length == 128:
                continue
            group = _multiples(16 - bits)
            right.append(f"{group}{zeros}/{length}")
            left.append(f"{group}(?::{_ZERO}){{0,{8 - reached}}}::{_ALL_ZERO}/{length}")
        parts.append(f"(?:[0-9A-Fa-f:]*:)?{either(right)}" if reached > 1 else either(right))
        if reached < 8 or right:
            parts.append((f"(?:{_GROUP}:){{{reached - 1}}}" if reached > 1 else "") + either(left))
        lengths = integers(16 * (reached - 1) + 1, min(16 * reached, 127))
        parts.append(f"{swallowed}::{_ALL_ZERO}/{lengths}")
    return f"(?={ipv6_addresses()}(?![0-9A-Fa-f:.])){either(parts)}"


_ALL_ZERO = f"(?:{_ZERO}(?::{_ZERO})*)?"


def _multiples(zero_bits: int) -> str:
    """A group of four hexadecimal digits whose last bits are zero."""
    digits, bits = divmod(zero_bits, 4)
    if digits == 4:
        return _ZERO
    last = "[0-9A-Fa-f]" if not bits else "[" + _hex_digits(range(0, 16, 1 << bits)) + "]"
    if digits == 0:
        return f"[0-9A-Fa-f]{{0,3}}{last}"
    return f"(?:{_ZERO}|[0-9A-Fa-f]{{0,{3 - digits}}}{last}0{{{digits}}})"


def _hex_digits(values: Iterable[int]) -> str:
    return "".join(sorted({digit for value in values for digit in (f"{value:x}", f"{value:X}")}))


_LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?"
_HOST = rf"(?:(?:{_LABEL}\.)*[A-Za-z_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?\.?|{IPV4}|\[[0-9A-Fa-f:.]+\])"
_USER = r"(?:[A-Za-z0-9._~%!$&'()*+,;=:-]*@)?"
_PORT = f"(?::{integers(0, 65535)})?"
_REST = r"(?:[\/?#][^\s\u0000-\u001f\u007f\\]*)?"


def urls(schemes: list[str] | None) -> str:
    """URLs of these schemes, or of any."""
    if not schemes:
        others = r"(?!(?:https?|ftp|file|wss?):)[A-Za-z][A-Za-z0-9+.-]*:[^\s\u0000-\u001f\u007f\\]*"
        return either([urls(["http", "https", "ftp", "ws", "wss"]), urls(["file"]), others])
    start = either(re.escape(scheme).replace(r"\-", "-") for scheme in schemes) + r":\/\/"
    if "file" in schemes:  # a file's host has no user and no port
        return f"{start}{_HOST}?(?:\\/[^\\s\\u0000-\\u001f\\u007f\\\\]*)?"
    return f"{start}{_USER}{_HOST}{_PORT}{_REST}"


def url_lists(schemes: list[str] | None) -> str:
    """URLs of several hosts, as data stores have them."""
    if not schemes:
        return urls(None)
    start = either(re.escape(scheme).replace(r"\-", "-") for scheme in schemes) + r":\/\/"
    host = f"{_USER}{_HOST}{_PORT}"
    return f"{start}{host}(?:,{host})*{_REST}"
