"""Other libraries: models and tokenizers of transformers, and the one-call face on top of them."""

from __future__ import annotations

from tokenform.errors import extras

with extras():
    import tokenform.decoding  # noqa: F401  (what is here runs models: without torch this says what to install)
