"""Benchmarks, judges and evaluations: everything that measures tokenform or compares it with its peers.

Nothing that writes texts imports from here: the command, and the pages that compare samplers, do.
"""
