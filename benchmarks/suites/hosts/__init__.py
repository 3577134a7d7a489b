"""Loops of serving engines with a random model in the place of theirs: what tests and benchmarks drive."""
