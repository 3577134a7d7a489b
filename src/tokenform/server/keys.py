"""Keys, as arguments or in a file: one a line, read again when the file has changed.

Invariant: a file that can't be read, or has a wrong line, leaves the keys as they were, with one line in the
log; a file without keys admits nobody.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tokenform.engine import Limits
from tokenform.errors import OptionError

logger = logging.getLogger("tokenform.server")


@dataclass(frozen=True)
class Key:
    """One caller.

    Attributes:
        secret: what it sends; empty: anybody may call.
        name: in logs and metrics.
        concurrent: requests at once.
        tokens: most tokens of an answer, over all of its texts.
        schema_bytes: size of a constraint's text.
        limits: work and memory of a constraint; None: the process's.
    Raises:
        OptionError: no client could send the secret.
    """

    secret: str = field(default="", repr=False)
    name: str = "anybody"
    concurrent: int = 64
    tokens: int = 8192
    schema_bytes: int = 1 << 18
    limits: Limits | None = None

    def __post_init__(self) -> None:
        secret = self.secret
        if not (secret.isascii() and secret.isprintable() and secret == secret.strip()):
            raise OptionError(  # the secret itself is not shown
                f"the key {self.name!r} can't be sent in a header, so nobody could ask with it: let it have "
                "visible ASCII characters alone."
            )


class KeyFile:
    """A file with lines of a name, blanks, and the secret; `#` begins a comment.

    Args:
        path: of the file.
        make: a key of its secret and its name, with its limits.
    Raises:
        OptionError: it can't be read now.

    Complexity: a look at the file's date for each request.
    """

    def __init__(self, path: Path, make: Callable[[str, str], Key]) -> None:
        self._path, self._make = path, make
        self._last_stamp: tuple[int, ...] | None = self._stamp()
        self.keys = self._read()

    def changed(self) -> bool:
        """Whether `keys` have changed since the last call."""
        stamp = self._stamp()
        if stamp == self._last_stamp:
            return False
        self._last_stamp = stamp
        try:
            self.keys = self._read()
        except OptionError as error:
            logger.error("%s The keys stay as they were.", error)
            return False
        logger.info("%d keys were read.", len(self.keys))
        return True

    def forget(self) -> None:
        """The next request reads the file, whatever its date."""
        self._last_stamp = ()

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> list[Key]:
        try:
            text = self._path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise OptionError(f"the keys can't be read from {self._path}: {why}.") from None
        keys: dict[str, Key] = {}
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2:  # the line itself is a secret: it is not shown
                raise OptionError(
                    f"{self._path}, line {number}: a name and a secret are wanted, not {len(words)} words."
                )
            name, secret = words
            if name in keys:
                raise OptionError(f"{self._path}, line {number}: the name {name!r} stands above already.")
            keys[name] = self._make(secret, name)
        return list(keys.values())
