"""Rules of acceptance are gone: drafts are verified by sample-and-match (`matching.py`)."""

from typing import NoReturn

from tokenform.decoding.removed import refuse


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
