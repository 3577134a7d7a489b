"""The shared backbone: the model, its cache, and one forward pass for everybody."""

from .base import Backbone
from .choice import check_model
from .facts import device_of
from .prompt_cache import PromptCache
from .static_passes import GRAPHS, Compiled

__all__ = ["GRAPHS", "Backbone", "Compiled", "PromptCache", "check_model", "device_of"]
