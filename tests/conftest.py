"""The same run every time: neither examples nor the work that is done hang on chance or on the clock.

The default run draws the same examples, so a red CI means a change and not a new draw.  New examples are
looked for by `make slow`, which runs everything once more at random (`--hypothesis-profile=default`), and by
the differential and fuzz commands.  Which drafts are scored is decided by what passes cost; here they cost
what a table says, for a busy machine would decide otherwise.
"""

import gc
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, database=None)
settings.load_profile("repeatable")
_MEASURED: list[Any] = []


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Thousands of tests and the libraries under them stay until the end: the garbage collector, which would
    walk over them again and again, is told so."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # at the end of the process they are freed as ever: some libraries count what is left


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases", type=int, metavar="N", help="of each test at most N cases, from its first to its last"
    )


def spread(number: int, most: int) -> set[int]:
    """`most` of the places 0 to `number - 1`, as far apart as they can be, the first and the last among them.

    >>> sorted(spread(10, 4)), spread(10, 1), spread(2, 4)
    ([0, 3, 6, 9], {0}, {0, 1})
    """
    if most >= number:
        return set(range(number))
    return {place * (number - 1) // max(1, most - 1) for place in range(most)}


@pytest.hookimpl(trylast=True)  # after `-m` and `-k`
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (most := config.getoption("--cases")) is None:
        return
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    kept = {id(cases[place]) for cases in tests.values() for place in spread(len(cases), most)}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


@pytest.fixture(scope="session", autouse=True)
def told_prices() -> Iterator[None]:
    """A pass takes 10 ms and 0.6 ms a token, a draft 0.1 ms, whatever they take."""
    try:
        from tokenform.decoding.speculative.passes import Passes
    except ImportError:  # the engine alone, without torch
        yield
        return

    def timings(passes: Passes) -> Iterator[tuple[float, float, float]]:
        for tokens, *_ in _MEASURED[0](passes):
            yield tokens, 0.010 + 0.0006 * tokens, 1e-4

    _MEASURED.append(Passes.timings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Passes, "timings", timings)
        yield


@pytest.fixture
def measured_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the clock itself: passes take what they take."""
    monkeypatch.setattr("tokenform.decoding.speculative.passes.Passes.timings", _MEASURED[0])
