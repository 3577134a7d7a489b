"""Length and shape policies."""

from .base import Policy, chances
from .best_first import BestFirst
from .confidence import Confidence
from .controller import Controller
from .cumulative import Cumulative
from .fixed import Fixed

__all__ = ["BestFirst", "Confidence", "Controller", "Cumulative", "Fixed", "Policy", "chances"]
