"""A model that wants nothing but blanks comes to an end of them at every place."""

from __future__ import annotations

import pytest

import blanks
from tokenform_bench.engines import EngineOptions
from tokenform_bench.engines.base import OWN


def spelled(whitespace):
    return EngineOptions(whitespace=whitespace)


@pytest.mark.parametrize("options", [OWN, *map(spelled, ("any", "spaced"))])
def test_blanks_come_to_an_end(options):
    _, found = blanks.column("tokenform", options, 200)
    assert [*found] == [*blanks.PLACES]
    for place, told in found.items():
        assert int(told.split()[0]) <= 64, (place, told)
