"""Other libraries: models and tokenizers of transformers, the one-call face on top of them, and the engines
that serve models.

A module here is one host; it needs that host alone.  What runs models needs torch, and says so.
"""
