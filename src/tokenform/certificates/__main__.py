"""`python -m certificates FILE`: exit code 0: accepted; 1: refused; 2: the constraint is not read here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from . import CannotCheck, Unproven, check

try:
    said = check(json.loads(Path(sys.argv[1]).read_bytes()))
except Unproven as error:
    sys.exit(f"refused: {error}")
except CannotCheck as error:
    print(f"can't check: {error}", file=sys.stderr)
    sys.exit(2)
print(f"accepted: {said}")
