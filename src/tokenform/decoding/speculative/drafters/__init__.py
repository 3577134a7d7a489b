"""Drafters: sources of guesses."""

from typing import NoReturn

from tokenform.decoding.removed import refuse

from .base import Budget, Context, Drafter, Nothing, Session
from .draft_model import DraftModel
from .forced import Forced
from .heads import Heads
from .hints import Hints, property_names
from .merge import Merge, auto
from .names import Names
from .ngram import NGram
from .other_vocabulary import VocabularyMap
from .recycling import Recycling
from .suffix import Suffix

__all__ = [
    "Budget",
    "Context",
    "DraftModel",
    "Drafter",
    "Forced",
    "Heads",
    "Hints",
    "Merge",
    "NGram",
    "Names",
    "Nothing",
    "Recycling",
    "Session",
    "Suffix",
    "VocabularyMap",
    "auto",
    "property_names",
]


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
