"""Schemas as other libraries export them, made at random: each with documents of its own validator's kind.

One file a library, of one shape: `make(rng)` gives a schema and documents, most of them valid.
"""
