"""The log as lines of JSON: what collectors of logs read without a pattern."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from typing import Any

PLAIN = "%(levelname)s %(name)s %(message)s"


class Lines(logging.Formatter):
    """An object a line: `time`, `level`, `logger`, and a request's own fields or `message`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        said = getattr(record, "said", None)
        line |= said if isinstance(said, dict) else {"message": record.getMessage()}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def write_logs(form: str, level: str) -> None:
    """Sends the process's log to stderr: "text" or "json", from a level on."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines() if form == "json" else logging.Formatter(PLAIN))
    logging.basicConfig(handlers=[handler])
    for name in ("tokenform", "uvicorn"):
        logging.getLogger(name).setLevel(level.upper())
