"""Benchmarks, judges and evaluations: everything that measures tokenform or compares it with its peers.

Nothing in the library imports from here; this package imports the public face alone, as a user would.
"""
