"""An HTTP server with the APIs of OpenAI and Anthropic, whose constrained answers are always valid.

`app.py` puts it together; `engine.py` is the model behind it; `endpoints/` has a file for each address, all
of one shape; `text_request.py` is the request that every API is read into; `constraints.py` and
`tooling.py` read its constraints; `answering.py` runs it; `faults.py` says what is wrong.
`playground/` is the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenform.server.app import create_app
    from tokenform.server.engine import Engine
    from tokenform.server.keys import Key

_LATER = {"create_app": "app", "Engine": "engine", "Key": "keys"}
__all__ = ["Engine", "Key", "create_app"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
