"""Keys that are taken back, a process that is killed under load or told to end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import time
from collections.abc import Iterator

from .proxies import proxy
from .stage import (
    CHAT,
    SHORT,
    Caller,
    NotHere,
    Stage,
    Streams,
    hold,
)


def check_reload(stage: Stage) -> Iterator[str]:
    """Keys given and taken back while texts are written."""
    stage.start()
    assert stage.process is not None
    keys, old = stage.folder / "keys", stage.caller()
    before = keys.stat()
    streams = Streams(old, 4)
    keys.write_text("team " + "0" * len(old.key or "") + "\n")
    os.utime(keys, ns=(before.st_atime_ns, before.st_mtime_ns))  # its date and size tell nothing
    stage.process.send_signal(signal.SIGHUP)
    hold(stage.caller().ask(SHORT)[0] == 200, "the new key may ask")
    hold(old.ask(SHORT)[0] == 401, "the old one may not")
    hold(streams.join() == {"whole": 4}, "texts under way are finished")
    with keys.open("a") as more:
        more.write("other k-other\n")
    hold(Caller(stage.port, "k-other").ask(SHORT)[0] == 200, "a key that is added may ask, without a signal")
    keys.write_text("team\n")
    hold(Caller(stage.port, "k-other").ask(SHORT)[0] == 200, "a broken file leaves the keys as they were")
    hold("stay as they were" in stage.log.read_text(), "and the log says so")
    stage.end()
    stage.shell(stage.first)
    yield "SIGHUP: the new key asks, the old one does not, 4 texts under way were finished"
    yield "a broken file of keys changes nothing"


def check_killed(stage: Stage) -> Iterator[str]:
    """kill -9 under load; the same command again."""
    stage.start()
    there = {path.name for path in stage.folder.iterdir()}
    with contextlib.ExitStack() as behind:
        caller, way = stage.caller(), "no proxy"
        with contextlib.suppress(NotHere):
            caller, way = behind.enter_context(proxy(stage, "nginx")), "nginx"
            there = {path.name for path in stage.folder.iterdir()}
        streams = Streams(caller, 16)
        stage.end(signal.SIGKILL)
        ends = streams.join()
        hold(ends["broken"] >= 8 and not set(ends) - {"broken", "whole"}, f"who lost a text knows it: {ends}")
        if way == "nginx":
            hold(caller.ask(SHORT)[0] == 502, "while it is away: 502")
        stage.start()
        hold(caller.ask(SHORT)[0] == 200, "the same command serves again")
        hold({path.name for path in stage.folder.iterdir()} == there, "it keeps nothing on disk")
    stage.end()
    told = f"{ends['broken']} broken and known to be, {ends['whole']} whole"
    yield f"kill -9 under 16 streams ({way}): {told}; serves again"


def check_ended(stage: Stage) -> Iterator[str]:
    """SIGTERM under load: what was begun is finished."""
    stage.start()
    assert stage.process is not None
    kept, answer = stage.caller().open("GET", "/health")  # a connection that stays open
    answer.read()
    streams = Streams(stage.caller(), 8)
    stage.process.terminate()
    time.sleep(0.5)
    try:
        kept.request(
            "POST",
            CHAT,
            json.dumps(SHORT),
            {"Authorization": f"Bearer {stage.key}", "Content-Type": "application/json"},
        )
        refused = kept.getresponse()
        later = f"{refused.status}, Retry-After: {refused.headers['Retry-After']}"
        hold(
            refused.status == 503 and refused.headers["Retry-After"] is not None,
            f"nothing more is taken: {later}",
        )
    except (OSError, http.client.HTTPException):
        later = "no connection"
    ends = streams.join()
    status = stage.process.wait(60)
    hold(ends == {"whole": 8}, f"what was begun is finished: {ends}")
    hold(status in (0, -signal.SIGTERM), f"it ends well: {status}")
    yield f"SIGTERM under 8 streams: 8 whole, a new request: {later}; exit {status}"
