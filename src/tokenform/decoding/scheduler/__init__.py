"""Continuous batching: calls of many threads share the forward passes of one model.

`scheduler.py` takes the calls, `queue.py` counts and refuses them, and runs those of faithful samplers;
`jobs.py` is what a call waits for; `batch.py` runs texts token by token.
"""

from __future__ import annotations

from tokenform.decoding.scheduler.jobs import Job, Listener, Load, Piece
from tokenform.decoding.scheduler.queue import JobQueue
from tokenform.decoding.scheduler.scheduler import Scheduler
from tokenform.decoding.thinking import Thinking, Thought

__all__ = ["Job", "JobQueue", "Listener", "Load", "Piece", "Scheduler", "Thinking", "Thought"]
