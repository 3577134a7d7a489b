"""Benchmarks, judges and evaluations: everything that measures tokenform or compares it with its peers.

A distribution of its own, `tokenform-bench`.  The library imports nothing from here; the commands
`tokenform evaluate` and `tokenform bench` find it where it is installed.
"""
