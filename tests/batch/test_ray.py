"""A file on a Ray cluster of two nodes, one of which dies: the output is that of an undisturbed run."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tokenform as tf
from tokenform.batch import Generate, Limits, run

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'tokenform[ray]'")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from test_job import SCHEMA, lines, rows_of, save  # noqa: E402
from writers import logged, walker  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch):
    from ray.cluster_utils import Cluster

    paths = [str(Path(tf.__file__).parents[1]), str(HERE), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("RAY_worker_niceness", "0")  # its default of 15 starves on a busy machine
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    other = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield cluster, other
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.parametrize("count", [int(os.environ.get("TOKENFORM_ROWS", "20000"))])
def test_a_node_dies_and_a_row_is_poisoned(tmp_path: Path, two_nodes, count: int) -> None:
    cluster, other = two_nodes
    poisoned = count - count // 10
    source = save(tmp_path / "in.jsonl", rows_of(count, (poisoned,)))
    whole, output, log = tmp_path / "whole.jsonl", tmp_path / "out.jsonl", tmp_path / "log"
    run(Generate(walker, SCHEMA, batch_size=8), source, whole, Limits(workers=2), quiet=True)
    died: list[int] = []

    def kill_a_node() -> None:
        """When both have written: each has one process until the poisoned row ends one."""
        deadline = time.monotonic() + 900
        while time.monotonic() < deadline and not died:
            written = log.read_text().splitlines() if log.exists() else []
            if len({line.partition(" ")[0] for line in written}) > 1 and len(written) > count // 8:
                cluster.remove_node(other, allow_graceful=False)
                died.append(len(written))
            time.sleep(0.02)

    killer = threading.Thread(target=kill_a_node)
    killer.start()
    write = Generate(functools.partial(logged, str(log)), SCHEMA, batch_size=8)
    done = run(write, source, output, Limits(workers=2, ray="auto"), quiet=True)
    killer.join()
    assert died and died[0] < poisoned, "one node alone had written everything"
    assert (done.written, done.refused) == (count - 1, 1)
    assert output.read_bytes() == whole.read_bytes()
    assert [one["error"] for one in lines(tmp_path / "out.errors.jsonl")] == ["crash"]
    written = log.read_text().splitlines()
    print(f"{len(written)} rows written, {died[0]} of them before a node died")
    # a second try for what was in hand or on its way, and the poisoned batch
    assert count <= len(written) <= count + max(count // 4, 200)


def test_in_a_pipeline_of_ray_data(two_nodes) -> None:
    rows = [{"id": i, "prompt": f"row {i}"} for i in range(100)]
    write = Generate(walker, SCHEMA, seed=2)
    columns = {name: np.array([row[name] for row in rows]) for name in ("id", "prompt")}
    expected = dict(zip(range(100), write(columns)["output"]))
    data = ray.data.from_items(rows, override_num_blocks=7).map_batches(
        Generate,
        fn_constructor_kwargs={"model": walker, "schema": SCHEMA, "seed": 2},
        compute=ray.data.ActorPoolStrategy(size=2),
        batch_size=9,
    )  # fmt: skip
    assert {row["id"]: row["output"] for row in data.take_all()} == expected


def test_it_is_gone_on_with_after_the_driver_is_killed(tmp_path: Path, two_nodes) -> None:
    source, output = save(tmp_path / "in.jsonl", rows_of(300)), tmp_path / "out.jsonl"
    write = Generate(functools.partial(logged, str(tmp_path / "log"), 0.01), SCHEMA, batch_size=4)
    whole = tmp_path / "whole.jsonl"
    run(Generate(walker, SCHEMA, batch_size=4), source, whole, quiet=True)
    command = [sys.executable, "-c", _DRIVER, str(source), str(output), str(tmp_path / "log")]
    driver = subprocess.Popen(command, env={**os.environ, "RAY_ADDRESS": two_nodes[0].address})
    deadline = time.monotonic() + 600
    journal = output.with_name("out.jsonl.journal")
    while time.monotonic() < deadline and not (journal.exists() and journal.stat().st_size > 2000):
        time.sleep(0.01)
    driver.kill()
    driver.wait()
    done = run(write, source, output, Limits(workers=2, ray="auto"), quiet=True)
    assert 0 < done.before < 300 and output.read_bytes() == whole.read_bytes()


_DRIVER = f"""
import functools, sys
from tokenform.batch import Generate, Limits, run
from writers import logged
source, output, log = sys.argv[1:]
write = Generate(functools.partial(logged, log, 0.01), {SCHEMA!r}, batch_size=4)
run(write, source, output, Limits(workers=2, ray="auto"), quiet=True)
"""
