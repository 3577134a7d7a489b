"""Callers and their limits.

Invariant: keys are compared in constant time and never written anywhere; a request over a limit is refused
with the limit's number, before any work.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tokenform.server.faults import Refused
from tokenform.server.keys import Key, KeyFile


class Guard:
    """The keys, and their running requests.

    Args:
        keys: callers; with none, or one without a secret, anybody may call, within its limits.
        file: more of them, which may change; with it every request needs a key.
    """

    def __init__(self, keys: Sequence[Key] = (), file: KeyFile | None = None) -> None:
        self._fixed_keys, self._file = list(keys), file
        self._keys = self._all()
        self.open = file is None and not any(key.secret for _, key in self._keys)
        self._using: dict[str, int] = {}

    def _all(self) -> list[tuple[bytes, Key]]:
        listed = self._fixed_keys + ([] if self._file is None else self._file.keys)
        if not listed and self._file is None:
            listed = [Key()]
        return [(_digest(key.secret), key) for key in listed]

    def key(self, secret: str | None) -> Key:
        """The caller whose secret this is.

        Raises:
            Refused: there is no such key.
        """
        if self.open:
            return self._keys[0][1]
        if self._file is not None and self._file.changed():
            self._keys = self._all()
        digest, found = _digest(secret or ""), None
        for digest_of_key, key in self._keys:  # all of them: the time says nothing
            if hmac.compare_digest(digest_of_key, digest):
                found = key
        if found is None or not secret:
            raise Refused(
                "this server wants an API key: send it as 'Authorization: Bearer ...'.",
                status=401,
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return found

    @contextmanager
    def using(self, key: Key) -> Iterator[None]:
        """One request of this caller."""
        used = self._using.get(key.name, 0)
        if used >= key.concurrent:
            raise Refused(
                f"this key has {used} requests under way, which is its limit; try again when one is done.",
                status=429,
                code="too_many_requests",
                headers={"Retry-After": "1"},
            )
        self._using[key.name] = used + 1
        try:
            yield
        finally:
            self._using[key.name] -= 1
            if not self._using[key.name]:
                del self._using[key.name]

    @property
    def count(self) -> int:
        """The number of valid keys."""
        return sum(bool(key.secret) for _, key in self._keys)

    @property
    def in_use(self) -> int:
        """Running requests."""
        return sum(self._using.values())


def bearer(headers: dict[str, str]) -> str | None:
    """The key of a request, as OpenAI's or Anthropic's clients send it."""
    kind, _, secret = headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else headers.get("x-api-key")


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
