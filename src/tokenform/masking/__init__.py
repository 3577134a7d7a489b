"""Masks on logits: applied by row number, from a table on the device."""

from __future__ import annotations

from tokenform.errors import extras

with extras():
    from tokenform.masking.apply import apply_mask_, apply_rows
    from tokenform.masking.reference import unpack_mask
    from tokenform.masking.table import CAPACITY, MaskRequest, MaskTable

__all__ = ["CAPACITY", "MaskRequest", "MaskTable", "apply_mask_", "apply_rows", "unpack_mask"]
