"""Schemas as other libraries export them, against two validators.

    python -m benchmarks.suites exports --count 2000 --seed 1

Purpose: what pydantic, FastAPI, drf-spectacular and zod's exporters write: all of it compiles, the documents
of their own validators are accepted, and what is written along the masks is valid.
Invariant: as of `differential`; and a schema that is refused is a finding, whatever the reason.
Complexity: as of `differential`.
Rejected: the libraries' test suites (other projects' files); their documented types are combined at random.
"""

from __future__ import annotations

import json
import random
import re
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from tokenform.errors import SchemaWarning

from .differential import Differ, Findings
from .exported import django_shapes, pydantic_models, zod_shapes

_BOUNDS = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
LIBRARIES = {
    "pydantic": pydantic_models.make,
    "fastapi": pydantic_models.make_fastapi,
    "django": django_shapes.make,
    "zod": zod_shapes.make,
}


def run(count: int, seed: int, libraries: Sequence[str] = tuple(LIBRARIES)) -> Iterator[Findings]:
    """Findings of so many schemas, the libraries in turns."""
    differ = Differ()
    for number in range(count):
        library = libraries[number % len(libraries)]
        rng = random.Random(f"{seed}:{number}")
        schema, documents = LIBRARIES[library](rng)
        draft = 7 if "draft-07" in json.dumps(schema.get("$schema", "")) else 2020
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SchemaWarning)  # OpenAPI's `nullable` says nothing to a validator
            found = differ.compare(
                schema, rng, draft, count=6, walks=2, given=documents, judged=_for_validators(schema)
            )
        if found.refused and not found.wrong:
            found.wrong.append(("refused", f"{library}: {found.refused}"))
        yield found


def _for_validators(schema: Any, draft_07: bool = False) -> Any:
    """The schema as validators of today read it: bounds without flags, ends and names of ECMA-262, and
    draft-07 as 2019-09 without its `unevaluatedProperties`, since draft-07 has no "uuid" and "duration"."""
    if isinstance(schema, list):
        return [_for_validators(part, draft_07) for part in schema]
    if not isinstance(schema, dict):
        return schema
    draft_07 = draft_07 or "draft-07" in str(schema.get("$schema"))
    made = {key: _for_validators(value, draft_07) for key, value in schema.items()}
    if draft_07:
        made.pop("unevaluatedProperties", None)
        made |= {"$schema": "https://json-schema.org/draft/2019-09/schema"} if "$schema" in made else {}
    if isinstance(made.get("pattern"), str):
        made["pattern"] = re.sub(r"\\[zZ]", "$", made["pattern"]).replace("(?P<", "(?<")
    for bound, flag in _BOUNDS:
        if isinstance(made.get(flag), bool) and made.pop(flag) and bound in made:
            made[flag] = made.pop(bound)
    return made
