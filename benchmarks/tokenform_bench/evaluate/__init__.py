"""`tokenform evaluate`: documents for a benchmark's schemas, written by a model under several engines, and
judged.

Reading order: `plan` (which units of work), `store` (the database), `write` (one document), `units` (what a
worker does), `job` (running, resuming), `figures` (metrics from the database), `report` (HTML and Markdown).
"""
