"""`tokenform serve` under 64 clients for as long as one says: nothing is lost, and everything adds up.

    python benchmarks/soak_server.py --minutes 60
    python benchmarks/soak_server.py --minutes 5 --window 1 --clients 16

Purpose: of the clients' requests a tenth is hostile, and another tenth goes away in the middle of a stream.
By windows of time it prints p50 and p99 of whole answers and the server's memory; at the end, requests as
the clients counted them, as lines of the log, and as figures of /metrics, status by status.
Judged: every answer is valid or the refusal that is due; the three counts are the same to the unit; nothing
is under way any more; no status from 500 on; the last window's memory is at most `GROWTH` above that of
the window at half time: before it the caches fill up, which are bounded.
The server is a process of its own; times are those of this machine with all that runs on it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "server"))
from load_requests import SCHEMAS, bodies, hostile, judged, request

CHAT = "/v1/chat/completions"
GROWTH = 64.0
"""MiB."""
LONGEST = 48
"""Tokens of the shortest text of what is asked for."""


class Soak:
    """What the clients share.

    Args:
        url: of the server.
        seconds: how long new requests are begun.
    """

    def __init__(self, url: str, key: str, seconds: float) -> None:
        self.url, self.headers = url, {"Authorization": f"Bearer {key}"}
        self.began = time.monotonic()
        self.until = self.began + seconds
        self.number, self.lock = 0, threading.Lock()
        self.asked: Counter[str] = Counter()
        self.gone = 0
        self.faults: list[str] = []
        self.times: list[tuple[float, float]] = []
        self.memory: list[tuple[float, float]] = []

    def client(self, bound: list[dict[str, Any]]) -> None:
        """One client: a request after the other."""
        with httpx.Client(base_url=self.url, headers=self.headers, timeout=600) as client:
            while time.monotonic() < self.until:
                with self.lock:
                    self.number += 1
                    number = self.number
                try:
                    self._one(client, number, bound)
                except Exception as error:
                    self.faults.append(f"request {number}: {type(error).__name__}: {str(error)[:300]}")

    def _one(self, client: httpx.Client, number: int, bound: list[dict[str, Any]]) -> None:
        if number % 10 == 0:
            kind = {"Content-Type": "application/json"}
            answer = client.post(CHAT, content=hostile(number // 10), headers=kind)
            self._count(answer.status_code)
            if answer.status_code not in (400, 429) or not answer.json()["error"]["message"]:
                raise AssertionError(f"a hostile body: {answer.status_code} {answer.text}")
        elif number % 10 == 5:
            long = {"guided_regex": "[a-z ]{300}", "max_tokens": 400, "seed": number, "stream": True}
            asked = {**long, "messages": [{"role": "user", "content": "a"}], "temperature": 1.0}
            with client.stream("POST", CHAT, json=asked) as streamed:
                self._count(streamed.status_code)
                for _ in zip(range(random.Random(number).randrange(1, 9)), streamed.iter_lines()):
                    pass
            self.gone += streamed.status_code == 200
        else:
            body, began = request(number, bound), time.monotonic()
            answer = client.post(CHAT, json=body)
            self._count(answer.status_code)
            if answer.status_code == 429:
                time.sleep(0.5)
                return
            if answer.status_code != 200:
                raise AssertionError(f"{answer.status_code} {answer.text}")
            self.times.append((began - self.began, time.monotonic() - began))
            (choice,) = answer.json()["choices"]
            judged(body, choice["message"], choice["finish_reason"])

    def _count(self, status: int) -> None:
        with self.lock:
            self.asked[str(status)] += 1

    def watch(self, process: int) -> None:
        """The server's memory, each second."""
        while time.monotonic() < self.until:
            self.memory.append((time.monotonic() - self.began, resident(process)))
            time.sleep(1)


def resident(process: int) -> float:
    """MiB that a process holds."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096 / 2**20


def counted(url: str, headers: dict[str, str]) -> Counter[str]:
    """Requests for chats by status, as /metrics tells them."""
    text = httpx.get(url + "/metrics", headers=headers).text
    found = re.findall(r'tokenform_requests_total\{endpoint="chat",status="(\d+)"\} (\S+)', text)
    return Counter({status: int(float(value)) for status, value in found})


def lines(log: Path) -> list[dict[str, Any]]:
    """Lines of chats in the log."""
    told = [json.loads(line) for line in log.read_text().splitlines()]
    return [line for line in told if line.get("endpoint") == "chat"]


def affordable(url: str, headers: dict[str, str]) -> list[dict[str, Any]]:
    """Constraints with room for their shortest text and some more."""
    kept = []
    for bound in bodies(SCHEMAS):
        asked = {**bound, "messages": [{"role": "user", "content": "a"}], "max_tokens": 1}
        answer = httpx.post(url + CHAT, json=asked, headers=headers, timeout=120)
        least = 1 if answer.status_code == 200 else answer.json()["error"].get("least", LONGEST + 1)
        if least <= LONGEST:
            kept.append({**bound, "max_tokens": least + 12})
    if len(kept) < 10:
        raise SystemExit(f"only {len(kept)} constraints have a text of {LONGEST} tokens")
    return kept


def report(soak: Soak, window: float) -> list[float]:
    """Prints a line a window; the highest memory of each."""
    print(f"{'from min':>9} {'answers':>8} {'p50 s':>7} {'p99 s':>7} {'MiB':>7}")
    highest = []
    for number in range(max(int(-(-(soak.until - soak.began) // window)), 1)):
        begin, end = number * window, (number + 1) * window
        took = sorted(seconds for at, seconds in soak.times if begin <= at < end)
        held = [mib for at, mib in soak.memory if begin <= at < end]
        highest.append(max(held, default=0.0))
        middle, last = (took[int(len(took) * part)] if took else 0.0 for part in (0.5, 0.99))
        print(f"{begin / 60:9.0f} {len(took):8,} {middle:7.2f} {last:7.2f} {highest[-1]:7.0f}")
    return highest


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--window", type=float, default=10.0, help="minutes")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--model", help="a folder; default: the built-in model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log, keys = Path(folder) / "log", Path(folder) / "keys"
        keys.write_text("soak k-soak\n")
        command = [sys.executable, "-m", "tokenform", "serve", *filter(None, [options.model]), "--port", "0"]
        command += ["--api-key-file", str(keys), "--log-format", "json", "--concurrent", "1000"]
        with log.open("w") as out:
            process = subprocess.Popen(command, stderr=out)
        try:
            return soaked(options, process.pid, log)
        finally:
            process.terminate()
            process.wait(60)


def soaked(options: argparse.Namespace, process: int, log: Path) -> int:
    """Runs the clients against a server that starts, and judges."""
    while not (found := re.search(r"running on (http://127\.0\.0\.1:\d+)", log.read_text())):
        time.sleep(0.1)
    headers = {"Authorization": "Bearer k-soak"}
    bound = affordable(found[1], headers)
    before = counted(found[1], headers)
    soak = Soak(found[1], "k-soak", 60 * options.minutes)
    threads = [threading.Thread(target=soak.client, args=(bound,)) for _ in range(options.clients)]
    threads.append(threading.Thread(target=soak.watch, args=(process,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(600):  # streams that nobody reads end at their next step
        left = httpx.get(found[1] + "/health").json()
        if not left["requests"]:
            break
        time.sleep(0.1)
    highest = report(soak, 60 * options.window)
    asked, told = soak.asked, Counter(str(line["status"]) for line in lines(log))
    counts = [asked, told - before, counted(found[1], headers) - before]
    cancelled = sum(line.get("reason") == "cancelled" for line in lines(log))
    print(f"requests: {sum(asked.values()):,} asked, by status {dict(sorted(asked.items()))}")
    print(f"lines of the log {sum(counts[1].values()):,}, counted {sum(counts[2].values()):,}")
    print(f"{soak.gone:,} went away, {cancelled:,} of them unfinished; under way: {left['requests']}")
    grown = highest[-1] - highest[len(highest) // 2]
    print(f"memory: {grown:+.0f} MiB from half time to the last window")
    faults = soak.faults + [f"a status: {one}" for one in asked if one >= "500"]
    if not counts[0] == counts[1] == counts[2]:
        faults.append(f"counts differ: {counts}")
    if left["requests"]:
        faults.append("requests are under way still")
    if grown > GROWTH:
        faults.append(f"memory grows by more than {GROWTH:.0f} MiB")
    print(*faults[:20], sep="\n")
    print("good" if not faults else f"BAD: {len(faults)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
