"""The recorded outputs: a file that is not part of the repository."""

from __future__ import annotations

import json
import lzma
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

_BESIDE = Path(__file__).parents[3] / "shared"


@lru_cache(maxsize=1)
def cases() -> list[dict[str, Any]]:
    """Every recorded output; the test is skipped where the file is missing."""
    path = Path(os.environ.get("TOKENFORM_SHARED", _BESIDE)) / "data" / "tool-calls-dev.jsonl.xz"
    if not path.exists():
        pytest.skip(
            f"{path} is missing: set TOKENFORM_SHARED to the folder that has data/tool-calls-dev.jsonl.xz"
        )
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
