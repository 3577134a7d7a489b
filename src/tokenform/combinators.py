"""Parts of constraints, put together with `+`, `|`, `&` and `~`: `tf.combinators`."""

from __future__ import annotations

from tokenform.frontends.combinators import capture, contains, literal, special_token, substring, until
from tokenform.frontends.condition import predicate
from tokenform.frontends.patterns import any_text

__all__ = ["any_text", "capture", "contains", "literal", "predicate", "special_token", "substring", "until"]
