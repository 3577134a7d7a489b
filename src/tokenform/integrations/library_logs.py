"""The log of transformers, which writes to stderr by itself, as a part of the process's log."""

from __future__ import annotations

import contextlib


def join_logs() -> None:
    """Sends what transformers logs to the process's handlers; without transformers there is nothing to do."""
    with contextlib.suppress(ModuleNotFoundError):
        from transformers.utils import logging

        logging.disable_default_handler()
        logging.enable_propagation()
