"""The playground: a page that shows what a constraint accepts and why it refuses, and a model at work.

Purpose: `routes(generator)` for any Starlette app.  The page (`page/`, plain ES modules) asks for JSON; what
needs no model is also answered by the engine in WebAssembly, for a site without a server.
Invariant: no request blocks the event loop, outgrows `queries.py`'s sizes or the engine's limits, or goes on
after its reader has gone; texts of requests come back as JSON strings and the page shows them as text alone.
Rejected: a page made by templates (its texts would have to be escaped; JSON and `textContent` need no care).

    app = Starlette(routes=routes(tf.Generator()))
"""

from __future__ import annotations

from tokenform.errors import extras

with extras():
    from tokenform.server.playground.endpoints import routes

__all__ = ["routes"]
