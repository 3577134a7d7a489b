"""The claims of a certificate, one by one; docs/certificates.md says what they are.

Complexity: each state is a walk along the bytes of all tokens; what a byte leads to is remembered.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from .characters import utf8
from .gbnf import GbnfText
from .grammar import Productions
from .patterns import Pattern
from .schema import OPTIONS, SchemaText
from .terms import CannotCheck, Terms

FORMAT, VERSION = "tokenform certificate", 1
FIELDS = {"format", "version", "constraint", "vocabulary", "text", "positions", "states"}


class Unproven(Exception):
    """A claim of the certificate does not hold."""


def vocabulary_hash(tokens: list[bytes], ends: list[int], special: list[int]) -> str:
    """SHA-256 over the tokens, each behind its length, then the ends and the special ones, each behind their
    number; numbers are of four bytes, the least significant first."""
    whole = hashlib.sha256()
    for token in tokens:
        whole.update(len(token).to_bytes(4, "little") + token)
    for numbers in (ends, special):
        whole.update(b"".join(number.to_bytes(4, "little") for number in [len(numbers), *numbers]))
    return whole.hexdigest()


def check(certificate: Any) -> str:
    """What was found right, in words.

    Raises:
        Unproven: something is claimed that does not hold, or the certificate is no certificate.
        CannotCheck: the constraint is none of those that are read here.
    """
    try:
        return _Checked(certificate).said
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise Unproven(f"this is no certificate: {error!r}") from None
    except RecursionError:
        raise CannotCheck("nested too deep") from None


def language(constraint: dict[str, Any]) -> Productions:
    """The texts of a constraint."""
    terms, kind = Terms(), constraint["kind"]
    if kind == "regex":
        term = Pattern(terms, constraint["text"], "python", utf8).whole()
        return Productions(terms, {"": [[term]]}, "")
    if kind == "choice":
        return Productions(terms, {"": [[terms.text(text.encode())] for text in constraint["texts"]]}, "")
    if kind == "gbnf":
        rules = GbnfText(terms, constraint["text"]).rules
        return Productions(terms, rules, constraint["start"])
    if kind == "json_schema" and constraint["options"] == OPTIONS:
        schema = SchemaText(terms, constraint["text"])
        return Productions(terms, schema.rules, schema.start)
    raise CannotCheck(f"a constraint of kind {kind!r} with these options")


class _Checked:
    def __init__(self, certificate: dict[str, Any]) -> None:
        _require(set(certificate) == FIELDS, "the fields")
        _require((certificate["format"], certificate["version"]) == (FORMAT, VERSION), "format and version")
        told = certificate["vocabulary"]
        ends, special = told["end"], told["special"]
        self.tokens = [base64.b64decode(token, validate=True) for token in told["tokens"]]
        _require(vocabulary_hash(self.tokens, ends, special) == told["sha256"], "the vocabulary's hash")
        ids = set(range(len(self.tokens)))
        _require(ids.issuperset([*ends, *special]), "ends and special tokens are of the vocabulary")
        self.texts = {n for n in ids.difference(ends, special) if self.tokens[n]}
        self.grammar = language(certificate["constraint"])
        checked: dict[tuple[int | None, int], set[int]] = {}
        text, positions, states = certificate["text"], certificate["positions"], certificate["states"]
        _require(len(positions) == len(text) + 1, "a position before each token and one at the end")
        _require(set(positions) == set(range(len(states))), "each state has a position")
        at = self.grammar.start
        for place, number in enumerate(positions):
            where = f"at position {place}, "
            if (at, number) not in checked:
                checked[at, number] = self._state(at, states[number], where)
            if place < len(text):
                _require(text[place] in checked[at, number], where + "the token that comes is allowed")
                at = self.grammar.read(at, self.tokens[text[place]])
        self.said = f"{len(text)} tokens, {len(states)} states, masks of {len(self.tokens)} tokens"

    def _state(self, at: int | None, claim: dict[str, Any], where: str) -> set[int]:
        """The tokens that are allowed after it."""
        _require(set(claim) == {"end", "allowed", "refused"}, where + "the fields")
        _require(claim["end"] is self.grammar.accepts(at), where + "an end where the text may end")
        allowed, told = set[int](), list[int]()
        for ranges, witness in claim["allowed"]:
            ids = _numbers(ranges)
            told += ids
            allowed.update(ids)
            _require(self.texts.issuperset([*ids, *witness]), where + "allowed tokens are texts")
            rest = b"".join(self.tokens[token] for token in witness)
            after = {token: self.grammar.read(at, self.tokens[token]) for token in ids}
            ending = {
                state for state in {*after.values()} if self.grammar.accepts(self.grammar.read(state, rest))
            }
            for token in ids:
                _require(after[token] in ending, f"{where}token {token} and its witness end a text")
        for ranges, readable in claim["refused"]:
            ids = _numbers(ranges)
            told += ids
            _require(self.texts.issuperset(ids), where + "refused tokens are texts")
            for token in ids:
                _require(
                    self._readable(at, token) == readable,
                    f"{where}token {token} fails after {readable} bytes",
                )
        _require(sorted(told) == sorted(self.texts), where + "each token is in one class")
        return allowed

    def _readable(self, at: int | None, token: int) -> int | None:
        """Bytes of a token after which an accepted text can go on, where not all are."""
        for read, byte in enumerate(self.tokens[token]):
            at = self.grammar.step(at, byte)
            if at is None:
                return read
        return None


def _require(holds: bool, claim: str) -> None:
    if not holds:
        raise Unproven(f"this does not hold: {claim}")


def _numbers(ranges: list[list[int]]) -> list[int]:
    """The numbers of ranges [first, last], which ascend."""
    numbers = [-1]
    for first, last in ranges:
        if not numbers[-1] < first <= last < 1 << 24:
            raise ValueError("ranges that do not ascend")
        numbers += range(first, last + 1)
    return numbers[1:]
