"""The shared backbone: the model, its cache, and one forward pass for everybody."""

from .base import Backbone, Counters
from .choice import check_model
from .facts import device_of
from .prompt_cache import PromptCache
from .rows import RowBackbone
from .static_passes import Compiled
from .trees import TreeBackbone

__all__ = [
    "Backbone",
    "Compiled",
    "Counters",
    "PromptCache",
    "RowBackbone",
    "TreeBackbone",
    "check_model",
    "device_of",
]
