"""Rehearses what docs/guides/operating.md promises of a server, with that page's own commands.

    python deploy/rehearse.py                                # the `tokenform` of this PATH
    python deploy/rehearse.py --tokenform /opt/tokenform/bin/tokenform --only proxies,killed
    .ci/operate                                              # the wheel, in a fresh Debian

Purpose: two commands bring a server up; behind nginx and Caddy it speaks TLS; a key is taken back, the
process is killed under load, told to end, left without disk and without memory; each time what was promised
is looked for.
Invariant: commands and settings are read from the page and the image's file, and only addresses, ports and
paths are put in their place.  Nothing but Python's own library is needed: a wheel alone may be there.
What can't be tried here (no nginx, no root for a user of its own) is said and is not counted as held.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rehearsal.ends import check_ended, check_killed, check_reload
from rehearsal.image import check_counts, check_image
from rehearsal.proxies import check_proxies
from rehearsal.shortage import check_disk, check_memory
from rehearsal.stage import NotHere, Stage

CHECKS = {
    "proxies": check_proxies,
    "counts": check_counts,
    "reload": check_reload,
    "killed": check_killed,
    "ended": check_ended,
    "disk": check_disk,
    "memory": check_memory,
    "image": check_image,
}


def rehearse(names: list[str], command: list[str], model: str = "") -> Iterator[tuple[str, str, bool]]:
    """Name, what was found, and whether it held."""
    for name in names:
        folder = Path(tempfile.mkdtemp(prefix="tokenform-"))
        stage = Stage(folder, command, model)
        try:
            for told in CHECKS[name](stage):
                yield name, told, True
        except NotHere as error:
            yield name, f"not tried: {error}", True
        except AssertionError as error:
            yield name, str(error), False
        finally:
            if stage.process is not None and stage.process.poll() is None:
                stage.process.kill()
                stage.process.wait()
            shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokenform", default="tokenform", help="the command, as a shell reads it")
    parser.add_argument("--model", default="", help="a model's folder; default: the built-in model")
    parser.add_argument("--only", default=",".join(CHECKS), help=f"of {', '.join(CHECKS)}")
    options = parser.parse_args()
    command = shlex.split(options.tokenform)
    command[0] = shutil.which(command[0]) or command[0]
    good = True
    for name, told, held in rehearse(options.only.split(","), command, options.model):
        print(f"{'held' if held else 'BROKEN':6} {name:8} {told}", flush=True)
        good &= held
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
