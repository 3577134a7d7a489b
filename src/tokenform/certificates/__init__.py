"""Certificates of masks, and their checker: docs/certificates.md.

Invariant: nothing here imports anything but Python's own library: a copy of this folder checks certificates
without the engine (`python -m certificates FILE`).
"""

from __future__ import annotations

from .check import Unproven, check, vocabulary_hash
from .terms import CannotCheck

__all__ = ["CannotCheck", "Unproven", "check", "vocabulary_hash"]
