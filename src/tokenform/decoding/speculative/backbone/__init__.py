"""The shared backbone: the model, its cache, and one forward pass for everybody."""

from .base import Backbone, Counters
from .plain import PlainRunner
from .prompt_cache import PromptCache
from .serial import SerialBackbone
from .trees import TreeBackbone

Runner = Backbone | PlainRunner
"""What runs a model for the driver."""

__all__ = ["Backbone", "Counters", "PlainRunner", "PromptCache", "Runner", "SerialBackbone", "TreeBackbone"]
