"""Length and shape policies."""

from typing import NoReturn

from tokenform.decoding.removed import refuse

from .account import Account
from .base import BestFirst, Fixed, Policy, chances
from .controller import Controller
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
