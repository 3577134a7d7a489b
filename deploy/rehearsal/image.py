"""The image's command as its user; requests, lines and counts."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

from .stage import (
    IMAGE,
    SHORT,
    Caller,
    NotHere,
    Stage,
    by_status,
    hold,
)


def check_image(stage: Stage) -> Iterator[str]:
    """The image's user, environment, command and health check, without the image."""
    text = IMAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    if os.geteuid() != 0:
        raise NotHere("the image's user needs root")
    entry = json.loads(re.search(r"ENTRYPOINT (\[.*\])", text)[1])  # type: ignore[index]
    health = json.loads(re.search(r"HEALTHCHECK .*?CMD (\[.*\])", text)[1])  # type: ignore[index]
    user = int(re.search(r"--uid (\d+)", text)[1])  # type: ignore[index]
    variables = dict(one.split("=") for one in re.search(r"\nENV (HF\S+.*)", text)[1].split())  # type: ignore[index]
    stage.folder.chmod(0o755)
    os.chown(stage.folder / "keys", user, user)
    asked = subprocess.run(
        [str(stage.folder / "bin" / "tokenform"), "--version"], user=user, capture_output=True
    )
    if asked.returncode:
        raise NotHere("the command is not for other users")
    port = str(stage.port)
    command = shlex.join([port if word == "8000" else word for word in entry]) + " --api-key-file keys"
    bare = {"HOME": "/nonexistent", **variables}
    stage.start(command, user=user, group=user, environment=bare)
    check = [word.replace("8000", port) for word in health]
    hold(subprocess.run([sys.executable, *check[1:]]).returncode == 0, "the health check finds it well")
    hold(stage.caller().ask(SHORT)[0] == 200, "it serves")
    stage.end()
    hold(subprocess.run([sys.executable, *check[1:]], capture_output=True).returncode != 0, "... and gone")
    yield f"the image's command as user {user}, without a home: serves; the health check tells well from gone"


def check_counts(stage: Stage) -> Iterator[str]:
    """Lines of the log and figures add up to the requests."""
    stage.start()
    began, caller = len(stage.lines()), stage.caller()
    hostile = [
        {"guided_regex": "("},
        {"guided_jsn": {}},
        {**SHORT, "max_tokens": 1},
        {**SHORT, "model": "none"},
    ]
    statuses = [caller.ask({**SHORT, **(hostile[n % 4] if n % 10 == 0 else {})})[0] for n in range(60)]
    statuses += [Caller(stage.port, "k-none").ask(SHORT)[0]]
    asked = Counter(str(one) for one in statuses)
    # read first: a line is written after its answer was sent, and before the next answer
    counted = Counter({status: int(n) for (name, status), n in by_status(stage).items() if name == "chat"})
    logged = Counter(str(line["status"]) for line in stage.lines()[began:])
    hold(asked == logged == counted, f"asked {asked}, logged {logged}, counted {counted}")
    stage.end()
    yield f"61 requests, a tenth hostile: {dict(asked)} asked, logged, and counted"
