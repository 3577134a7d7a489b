"""`Generate` in pipelines of others: a partition of Dask, an iterator of frames as Spark hands it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tokenform as tf
from tokenform.batch import Generate

pandas = pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from writers import walker  # noqa: E402

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 99}}, "required": ["n"]}
COUNT = 60


def writer() -> Generate:
    return Generate(walker, SCHEMA, seed=3, batch_size=8)


@pytest.fixture(scope="module")
def frame() -> Any:
    prompts = ["long" if i == 17 else f"row {i % 7}" for i in range(COUNT)]
    return pandas.DataFrame({"id": [f"r{i}" for i in range(COUNT)], "prompt": prompts})


@pytest.fixture(scope="module")
def expected(frame: Any) -> Any:
    written = writer()({name: frame[name].to_numpy() for name in frame.columns})
    return frame.assign(**{name: written[name] for name in writer().outputs})


def same(found: Any, expected: Any) -> None:
    """Row for row and column for column; what is missing is None, NaN or NA by pandas' version."""
    assert list(found.columns) == list(expected.columns) and list(found.index) == list(expected.index)
    for name in expected.columns:
        given, want = (frame[name].astype(object) for frame in (found, expected))
        assert given.where(given.notna(), None).tolist() == want.where(want.notna(), None).tolist(), name


def test_frames_as_map_in_pandas_hands_them(frame: Any, expected: Any) -> None:
    asked: list[int] = []

    def parts() -> Iterator[Any]:
        for first in range(0, COUNT, 13):
            asked.append(first)
            yield frame.iloc[first : first + 13]
        yield frame.iloc[:0]  # Spark's partitions may be empty

    written = writer().frames(parts())
    first = next(written)
    assert asked == [0] and len(first) == 13  # a partition is not held whole
    whole = pandas.concat([first, *written])
    same(whole, expected)
    assert whole["output_error"].notna().sum() == 1 and whole["output"].isna().sum() == 1


@pytest.mark.parametrize("scheduler", ["sync", pytest.param("processes", marks=pytest.mark.slow)])
def test_map_partitions_of_dask(
    frame: Any, expected: Any, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'dask[dataframe]'")
    dataframe = pytest.importorskip(
        "dask.dataframe", reason="Dask's frames are not installed: pip install 'dask[dataframe]'"
    )
    paths = [str(Path(tf.__file__).parents[1]), str(HERE), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    write = writer()
    meta = write.frame(frame.iloc[:0])
    with dask.config.set({"scheduler": scheduler, "num_workers": 2}):
        done = dataframe.from_pandas(frame, npartitions=5).map_partitions(write.frame, meta=meta).compute()
    same(done.sort_index(), expected)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_map_in_pandas_of_spark(frame: Any, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed: pip install pyspark")
    paths = [str(Path(tf.__file__).parents[1]), str(HERE), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    try:
        session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    except Exception as error:
        if "JAVA" in str(error).upper():
            pytest.skip(f"Spark needs Java 17 or later: {error}")
        raise
    try:
        data = session.createDataFrame(frame.to_dict("records"), "id string, prompt string").repartition(3)
        columns = (
            "id string, prompt string, output string, output_error string, "
            "output_logprob double, output_tokens long, output_reason string, output_cut string"
        )
        done = data.mapInPandas(writer().frames, columns).toPandas()
    finally:
        session.stop()
    order = done.sort_values("id", key=lambda ids: ids.str[1:].astype(int)).reset_index(drop=True)
    same(order, expected)
