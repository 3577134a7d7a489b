"""Examples may set what holds for the whole process; the tests after them find it as it was."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def nothing_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenform.disk_cache._chosen", (None, None))
