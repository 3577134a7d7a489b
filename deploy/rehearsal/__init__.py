"""The rehearsal of docs/guides/operating.md by subject; `deploy/rehearse.py` runs it."""
