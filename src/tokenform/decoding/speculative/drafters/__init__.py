"""Drafters: sources of guesses."""

from .auto import auto
from .base import Budget, Context, Drafter, Nothing, Session
from .draft_model import DraftModel
from .forced import Forced
from .hints import Hints, property_names
from .layer_skip import LayerSkip, search_skip_set
from .lookahead import Lookahead
from .merge import Merge
from .names import Names
from .ngram import NGram
from .old_names import Input
from .other_vocabulary import VocabularyMap
from .recycling import Recycling
from .suffix import Suffix

__all__ = [
    "Budget",
    "Context",
    "DraftModel",
    "Drafter",
    "Forced",
    "Hints",
    "Input",
    "LayerSkip",
    "Lookahead",
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
    "search_skip_set",
]
