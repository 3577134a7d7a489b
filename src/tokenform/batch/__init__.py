"""Texts in bulk: files, processes, clusters, endpoints.

Purpose: `Generate` writes a batch of rows, wherever it is called; `run` brings a whole file through it, stops
and goes on.  Reading order: generate.py, opening.py, journal.py, job.py.
Invariant: importing this package imports neither torch nor a client; each process opens what it writes with
when it is first asked for a text.
"""

from __future__ import annotations

from tokenform.batch.endpoint import Endpoint
from tokenform.batch.generate import Generate
from tokenform.batch.job import Limits, Summary, run

__all__ = ["Endpoint", "Generate", "Limits", "Summary", "run"]
