"""Lossless speculation: the shared backbone, drafters, policies, target transforms.

Reading order: `tree.py`, `backbone/base.py`, `node.py`, `speculator.py`, then a variant each.
"""
