"""A cache on disk for later processes: parsed grammars in Lark's language, and tokenizers.

Invariant: a read returns exactly what was written, or nothing: an entry has a checksum, appears under its
name when it is complete, and its name is a hash of everything that it depends on, the files of this library
included.  A cache that can't be read or written costs only its time.
Complexity: an entry costs reading its bytes; writing one lists the folder once.  Over the bound, the least
recently used entries go.
Not cached: masks and automata, because a mask belongs to a state, which is a number of its process, and its
entry would be large while computing it is fast (`benchmarks/warm_start.py` measures both); JSON Schemas,
which are read faster than a file is opened.
Rejected: pickles (a folder that others write to would run their code).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tokenform import _core
from tokenform.errors import OptionError

VARIABLE = "TOKENFORM_CACHE_DIR"
LIMIT_VARIABLE = "TOKENFORM_CACHE_BYTES"
DEFAULT_BYTES = 512 << 20

_MARK = b"tokenform cache 1\n"
_SUM = 16
_ENDING = ".kept"
_STALE_SECONDS = 3600.0

_chosen: tuple[Path | None, int | None] = (None, None)


def cache_dir(path: str | os.PathLike[str] | None = None, *, limit: int | None = None) -> Path | None:
    """Sets the folder of the cache on disk, for later processes; without arguments, only returns it.

    The environment variables `TOKENFORM_CACHE_DIR` and `TOKENFORM_CACHE_BYTES` do the same from outside.
    Without a folder there is no cache.

    Args:
        path: the folder; it is created if missing.  Whoever can write to it can change the constraints of
            those who read it.
        limit: most bytes of the folder (512 MiB by default).
    Returns:
        The folder, or None: there is no cache.
    Raises:
        OptionError: the folder can't be made, or the limit is negative.

    >>> import tempfile, tokenform as tf
    >>> folder = tf.engine.cache_dir(tempfile.mkdtemp())
    >>> grammar = tf.lark('start: "a" start | "b"')
    >>> len(list(folder.iterdir()))
    1
    """
    global _chosen
    if limit is not None and limit < 0:
        raise OptionError(f"limit={limit} is not possible; give bytes.")
    if path is not None:
        folder = Path(path).expanduser().absolute()  # the process may change its working directory
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(f"{str(path)!r} can't be made: {error.strerror or error}.") from None
        _chosen = folder, limit
    elif limit is not None:
        _chosen = _chosen[0], limit
    return _folder()


def read(kind: str, *parts: bytes) -> bytes | None:
    """The entry of these parts; None where there is none, or it is damaged."""
    folder = _folder()
    if folder is None:
        return None
    path = folder / _name(kind, parts)
    try:
        data = path.read_bytes()
    except OSError:
        return None
    body = data[len(_MARK) + _SUM :]
    if data[: len(_MARK)] != _MARK or data[len(_MARK) : len(_MARK) + _SUM] != _sum(body):
        _remove(path)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # used now
    return body


def write(kind: str, body: bytes, *parts: bytes) -> None:
    """Writes the entry of these parts, if there is a cache and it can be written."""
    folder = _folder()
    if folder is None or len(body) > _limit():
        return
    path = folder / _name(kind, parts)
    partial = folder / f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(_MARK + _sum(body) + body)
        os.replace(partial, path)
        _bound(folder)
    except OSError:
        _remove(partial)


def forget(kind: str, *parts: bytes) -> None:
    """Deletes the entry of these parts, which is unusable."""
    folder = _folder()
    if folder is not None:
        _remove(folder / _name(kind, parts))


def _folder() -> Path | None:
    named = os.environ.get(VARIABLE)
    return _chosen[0] or (Path(named).expanduser() if named else None)


def _limit() -> int:
    if _chosen[1] is not None:
        return _chosen[1]
    value = os.environ.get(LIMIT_VARIABLE, "")
    return int(value) if value.isdecimal() else DEFAULT_BYTES


def _name(kind: str, parts: tuple[bytes, ...]) -> str:
    digest = hashlib.blake2b(_version(), digest_size=20)
    for part in (kind.encode(), *parts):
        digest.update(len(part).to_bytes(8, "little") + part)
    return f"{kind}-{digest.hexdigest()}{_ENDING}"


@cache
def _version() -> bytes:
    """The part of each key that changes with the library's files."""
    here = Path(__file__).parent
    files = [Path(_core.__file__), *sorted((here / "frontends").glob("*.py"))]
    files += sorted((here / "engine" / "tokenizers").glob("*.py"))
    stamps = [f"{file.name} {stat.st_size} {stat.st_mtime_ns}" for file in files if (stat := file.stat())]
    return "\n".join(stamps).encode()


def _sum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_SUM).digest()


def _entries(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """(last use, bytes, file) of each entry; deletes partial files of dead processes."""

    for path in folder.iterdir():
        try:
            stat = path.stat()
        except OSError:
            continue
        if path.name.startswith(".") and _ENDING in path.name:
            if time.time() - stat.st_mtime > _STALE_SECONDS:
                _remove(path)
        elif path.name.endswith(_ENDING):
            yield stat.st_mtime, stat.st_size, path


def _bound(folder: Path) -> None:
    entries = sorted(_entries(folder))
    total = sum(size for _, size, _ in entries)
    for _, size, path in entries:
        if total <= _limit():
            return
        _remove(path)
        total -= size


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
