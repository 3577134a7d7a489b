"""Samplers: each draws from a distribution that it documents."""

from __future__ import annotations

from tokenform.decoding.samplers.local import Local

__all__ = ["Local"]
