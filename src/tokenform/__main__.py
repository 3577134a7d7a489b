"""`python -m tokenform`: the command, where its script is not on the path."""

from __future__ import annotations

from tokenform.cli import main

main()
