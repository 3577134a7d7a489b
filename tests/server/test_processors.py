"""How many processors a process may use, by the files of its control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tokenform.server import processors
from tokenform.server.engine import Engine
from tokenform.server.processors import usable_processors


@pytest.fixture(autouse=True)
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def written(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {}, 8),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 8),
        ("0::/\n", {"cpu.max": "250000 100000\n"}, 3),
        ("0::/\n", {"cpu.max": "20000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "9900000 100000\n"}, 8),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "400000 100000\n"}, 4),
        ("0::/a/b\n", {"cpu.max": "200000 100000\n"}, 2),  # a container that sees itself as the root
        ("0::/a\n", {"a/cpu.max": "what\n"}, 8),
        (
            "4:memory:/m\n1:cpu,cpuacct:/pod\n",
            {"cpu,cpuacct/pod/cpu.cfs_quota_us": "150000\n", "cpu,cpuacct/pod/cpu.cfs_period_us": "100000\n"},
            2,
        ),
        ("1:cpu:/\n0::/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ("1:cpu:/x\n0::/\n", {"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "50000\n"}, 1),
    ],
)
def test_quotas(tmp_path: Path, groups: str, files: dict[str, str], expected: int) -> None:
    written(tmp_path, {**files, "groups": groups})
    assert usable_processors(tmp_path, tmp_path / "groups") == expected


def test_other_systems_and_this_one(tmp_path: Path) -> None:
    assert usable_processors(tmp_path, tmp_path / "none") == 8
    assert 1 <= processors.usable_processors() <= 8


def test_a_server_warms_up_and_starts_where_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine()
    engine.warm_up()
    assert not caplog.records
    engine.generator.generate = lambda *_, **__: 1 / 0
    engine.warm_up()
    assert "ZeroDivisionError" in caplog.text
    engine.scheduler.close()
