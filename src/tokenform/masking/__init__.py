"""Masks on logits."""

from __future__ import annotations

from tokenform.masking.reference import apply_mask_, unpack_mask

__all__ = ["apply_mask_", "unpack_mask"]
