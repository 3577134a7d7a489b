"""Constraints that are built from what exists: `tf.sql` from the tables of a database."""

from __future__ import annotations

from tokenform.frontends.catalog.query import sql

__all__ = ["sql"]
