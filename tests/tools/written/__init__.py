"""Calls as the models' templates write them, and what models do wrong in them.

`writers.py` writes each format by itself, without the library; `faults.py` breaks what it writes and says
what is left to read; `rows.py` puts them together, with a thought before.
"""
