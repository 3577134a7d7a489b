"""No disk, and no memory."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import resource
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from .stage import (
    SHORT,
    NotHere,
    Stage,
    Streams,
    by_status,
    hold,
)


def check_disk(stage: Stage) -> Iterator[str]:
    """The log, the home and the folder for temporary files on a disk that is full."""
    place, mounted = stage.folder / "small", False
    place.mkdir()
    if os.geteuid() == 0:
        small = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
        mounted = subprocess.run(small, capture_output=True).returncode == 0
    log = place / "log" if mounted else Path("/dev/full")
    try:
        home = {"environment": {"HOME": str(place), "TMPDIR": str(place)}} if mounted else {}
        stage.start(log=log, **home)
        if mounted:
            with contextlib.suppress(OSError), (place / "rest").open("wb", buffering=0) as rest:
                while rest.write(b"x" * 4096):
                    pass
        asked = [stage.caller().ask(SHORT)[0] for _ in range(40)]
        hold(asked == [200] * 40, f"answers are as before: {Counter(asked)}")
        ends = Streams(stage.caller(), 4).join()
        hold(ends == {"whole": 4}, f"streams, too: {ends}")
        hold(by_status(stage)["chat", "200"] == 44, "the figures count what the log could not hold")
        if mounted:
            (place / "rest").unlink()
            _, _, headers = stage.caller().ask(SHORT)
            hold(headers["X-Request-Id"] in log.read_text(), "the log goes on where there is room again")
        stage.end()
    finally:
        if mounted:
            subprocess.run(["umount", str(place)], check=True)
    disk = "tmpfs of 64 KiB" if mounted else "/dev/full"
    yield f"a full disk ({disk}): 44 of 44 answers, counted{'; the log goes on after' if mounted else ''}"


def check_memory(stage: Stage) -> Iterator[str]:
    """Nothing more to be had than `room`, under load; then as before."""
    if sys.platform != "linux":
        raise NotHere("limits of another process are Linux's")
    for room in (1500, 400, 100):
        stage.start()
        assert stage.process is not None
        number = stage.process.pid
        hold(stage.caller().ask(SHORT)[0] == 200, "it serves")
        size = int(re.search(r"VmSize:\s+(\d+)", Path(f"/proc/{number}/status").read_text())[1])  # type: ignore[index]
        before = resource.prlimit(number, resource.RLIMIT_AS)  # type: ignore[attr-defined]
        limit = (size << 10) + (room << 20)
        resource.prlimit(number, resource.RLIMIT_AS, (limit, before[1]))  # type: ignore[attr-defined]
        ends = _starved(stage)
        lived = _lives(stage.process, 5.0 if ends["broken"] else 0.0)
        unknown = set(ends) - {"200", "400", "503", "broken"}
        hold(not unknown, f"answers that say what is: {dict(ends)}")
        hold(not lived or not ends["broken"], f"who is not answered was not served: {dict(ends)}")
        if lived:
            resource.prlimit(number, resource.RLIMIT_AS, before)  # type: ignore[attr-defined]
        else:
            stage.start()
        hold(stage.caller().ask(SHORT)[0] == 200, "it serves as before")
        stage.end()
        after = "the limit lifted, it serves" if lived else "it ended, and serves when started again"
        yield f"{room} MiB left, 48 requests at once: {dict(sorted(ends.items()))}; {after}"


def _lives(process: subprocess.Popen[bytes], within: float) -> bool:
    """Whether a process goes on; one that ends has closed its connections before it is gone."""
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        return True
    return False


def _starved(stage: Stage) -> Counter[str]:
    """Ends of requests that want memory."""
    fields = {
        f"k{n}": {"type": "string", "pattern": f"^[a-{'bcdefghijk'[n % 10]}]{{3,{n}}}$"} for n in range(9, 90)
    }
    bodies = [
        {**SHORT, "guided_regex": "[a-z ]{300}", "max_tokens": 320, "temperature": 1.0, "n": 4},
        {
            "messages": SHORT["messages"],
            "guided_json": {"type": "object", "properties": fields},
            "max_tokens": 200,
        },
        {**SHORT, "messages": [{"role": "user", "content": "many words " * 80}]},
        {**SHORT, "messages": [{"role": "user", "content": "x" * 300_000}]},
    ]
    ends: list[str] = []

    def one(number: int) -> None:
        try:
            ends.append(str(stage.caller().ask({**bodies[number % 4], "seed": number})[0]))
        except (OSError, http.client.HTTPException) as error:
            ends.append("hung" if isinstance(error, TimeoutError) else "broken")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(48)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Counter(ends)
