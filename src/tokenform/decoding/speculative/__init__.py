"""Lossless speculation: the shared backbone, drafters, verifiers, policies, target transforms.

Reading order: `tree.py`, `backbone/base.py`, `node.py`, `speculator.py`, then a variant each.
"""

from .backbone import Backbone
from .node import Node
from .report import Report
from .request import Output, Request
from .speculator import Speculator, decode
from .tree import ROOT, DraftTree

__all__ = [
    "ROOT",
    "Backbone",
    "DraftTree",
    "Node",
    "Output",
    "Report",
    "Request",
    "Speculator",
    "decode",
]
