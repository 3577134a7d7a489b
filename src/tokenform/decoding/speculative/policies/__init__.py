"""Length and shape policies."""

from .account import Account
from .base import Policy, chances
from .best_first import BestFirst
from .confidence import Confidence
from .controller import Controller
from .cumulative import Cumulative
from .fixed import Fixed
from .prices import Prices

__all__ = [
    "Account",
    "BestFirst",
    "Confidence",
    "Controller",
    "Cumulative",
    "Fixed",
    "Policy",
    "Prices",
    "chances",
]
