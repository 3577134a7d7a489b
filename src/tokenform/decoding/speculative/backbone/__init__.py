"""The shared backbone: the model, its cache, and one forward pass for everybody."""

from .base import Backbone, Counters
from .serial import SerialBackbone
from .trees import TreeBackbone

__all__ = ["Backbone", "Counters", "SerialBackbone", "TreeBackbone"]
