"""Length and shape policies."""

from typing import NoReturn

from tokenform.decoding.removed import refuse

from .account import Account
from .base import Policy, chances
from .best_first import BestFirst
from .controller import Controller
from .fixed import Fixed
from .prices import Prices

__all__ = [
    "Account",
    "BestFirst",
    "Controller",
    "Fixed",
    "Policy",
    "Prices",
    "chances",
]


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
