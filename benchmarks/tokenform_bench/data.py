"""Reading the benchmark data: MaskBench-format files and the JSON-Schema-Test-Suite.

Purpose: one place that knows the file formats, so that judges and benchmarks see `Case` values only.
Invariant: reading is streaming (one schema in memory at a time) and never changes a document; a sample
depends on the ids and the seed alone, not on the order of the file.
Complexity: O(bytes of the file); a sample of n cases keeps n of them.
Source: MaskBench (guidance-ai/jsonschemabench) for the objects `{id, schema, tests: [{valid, data}]}`;
json-schema-org/JSON-Schema-Test-Suite for the other.
Rejected: loading a whole data set into a list (11,305 schemas are 200 MB of Python objects).
"""

from __future__ import annotations

import hashlib
import heapq
import json
import lzma
import os
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenform.errors import DataError

MASKBENCH_FILE = "maskbench-dev.jsonl.xz"
SUITE_FILE = "json-schema-test-suite.tar.xz"
_REMOTE_BASE = "http://localhost:1234/"
_DRAFT_URIS = {
    "draft3": "http://json-schema.org/draft-03/schema#",
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
DRAFTS = ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12")


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON document and the verdict that it must get."""

    data: Any
    valid: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One schema with its documents."""

    id: str
    schema: Any
    documents: tuple[Document, ...]

    @property
    def subset(self) -> str:
        """The part of the benchmark that the schema comes from: `Github_easy---o1` -> `Github_easy`."""
        head = self.id.split("---")[0]
        return head.rsplit("_", 1)[0] if head == self.id and "_" in head else head


@dataclass(frozen=True, slots=True)
class SuiteGroup:
    """One test case (schema and documents) of the JSON-Schema-Test-Suite."""

    draft: str
    file: str  # path below the draft's folder without ".json": "optional/format/date"
    description: str
    case: Case

    @property
    def required(self) -> bool:
        return not self.file.startswith("optional/")

    @property
    def is_format(self) -> bool:
        return self.file.startswith("optional/format/")


def shared_folder() -> Path | None:
    """The folder of shared data: `$TOKENFORM_SHARED`, else `../shared` beside the repository, else None."""
    named = os.environ.get("TOKENFORM_SHARED")
    beside = Path(__file__).resolve().parents[3].parent / "shared"
    for folder in [Path(named)] if named else [beside, Path.cwd().parent / "shared"]:
        if (folder / "data").is_dir():
            return folder
    return None


def shared_file(name: str) -> Path:
    """The path of a file in the shared data.

    Raises:
        DataError: the folder or the file isn't there.
    """
    folder = shared_folder()
    if folder is None:
        raise DataError(f"{name} was not found: set TOKENFORM_SHARED to the folder that holds data/{name}")
    path = folder / "data" / name
    if not path.is_file():
        raise DataError(f"{path} does not exist: put it there or give another file")
    return path


def read_maskbench(path: str | Path | None = None) -> Iterator[Case]:
    """The cases of a MaskBench-format folder of JSON files, `.jsonl` or `.jsonl.xz`; None is the shared file.

    Raises:
        DataError: the path does not exist, or a record is not what the format says.
    """
    where = shared_file(MASKBENCH_FILE) if path is None else Path(path)
    if where.is_dir():
        files = sorted(where.rglob("*.json"))
        if not files:
            raise DataError(f"{where} holds no .json files: give a folder of schemas, or a .jsonl file")
        for file in files:
            name = "---".join(file.relative_to(where).with_suffix("").parts)  # a subfolder is a subset
            yield _case(_parse(_read(file), str(file)), name, str(file))
        return
    if not where.is_file():
        raise DataError(f"{where} does not exist: give a folder of JSON files, or a .jsonl or .jsonl.xz file")
    try:
        with (
            lzma.open(where, "rt", encoding="utf-8")
            if where.suffix == ".xz"
            else where.open(encoding="utf-8") as f
        ):
            for number, line in enumerate(f, 1):
                if line.strip():
                    place = f"{where}:{number}"
                    yield _case(_parse(line, place), str(number), place)
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise DataError(f"{where} can't be read: {error}") from error


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} can't be read: {error}") from error


def _parse(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{place} is not JSON: {error}") from error


def _case(record: Any, name: str, place: str) -> Case:
    """A record of either format; a file without `schema` and `tests` is itself a schema without documents."""
    if not isinstance(record, dict):
        raise DataError(f"{place}: expected an object with schema and tests")
    if "schema" not in record or not isinstance(record.get("tests", []), list):
        return Case(name, record, ())
    documents = tuple(
        Document(test["data"], bool(test["valid"]), str(test.get("description", "")))
        for test in record.get("tests", [])
        if isinstance(test, dict) and "data" in test and "valid" in test
    )
    return Case(str(record.get("id", name)), record["schema"], documents)


def sample(cases: Iterable[Case], count: int | None, seed: int = 0) -> list[Case]:
    """`count` cases chosen by the hash of seed and id (all of them for None), in the order of the ids'
    hashes."""

    def rank(case: Case) -> tuple[bytes, str]:
        return hashlib.blake2b(f"{seed}:{case.id}".encode(), digest_size=8).digest(), case.id

    return sorted(cases, key=rank) if count is None else heapq.nsmallest(count, cases, key=rank)


def keywords_of(schema: Any) -> set[str]:
    """Every object key in the schema's text: a cheap upper bound of the keywords it uses."""
    found: set[str] = set()
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            found.update(node)
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return found


def read_suite(drafts: Iterable[str] = DRAFTS, path: str | Path | None = None) -> Iterator[SuiteGroup]:
    """The groups of the JSON-Schema-Test-Suite archive, in the order of its file names.

    A schema without `$schema` gets its draft's, as the suite's README asks of a runner for several drafts.

    Raises:
        DataError: the archive can't be read.
    """
    wanted = tuple(drafts)
    contents = _suite_files(path)
    for name in sorted(contents):
        parts = name.removesuffix(".json").split("/")
        if parts[0] != "tests" or parts[1] not in wanted:
            continue
        file = "/".join(parts[2:])
        for index, group in enumerate(_parse(contents[name], name)):
            schema = group["schema"]
            if isinstance(schema, dict) and "$schema" not in schema:
                schema = {"$schema": _DRAFT_URIS[parts[1]], **schema}
            documents = tuple(Document(t["data"], t["valid"], t["description"]) for t in group["tests"])
            case = Case(f"{parts[1]}/{file}#{index}", schema, documents)
            yield SuiteGroup(parts[1], file, group["description"], case)


def suite_registry(draft: str, path: str | Path | None = None) -> dict[str, Any]:
    """The remote schemas that the suite's `draft` may refer to, by URL (those of other drafts as well)."""
    contents = _suite_files(path)
    registry: dict[str, Any] = {}
    for name in sorted(contents):
        if name.startswith("remotes/"):
            rest = name.removeprefix("remotes/")
            schema = _parse(contents[name], name)
            owner = rest.split("/")[0]
            uri = _DRAFT_URIS.get(owner, _DRAFT_URIS[draft])
            if isinstance(schema, dict) and "$schema" not in schema:
                schema = {"$schema": uri, **schema}
            registry[_REMOTE_BASE + rest] = schema
    return registry


def _suite_files(path: str | Path | None) -> dict[str, str]:
    where = shared_file(SUITE_FILE) if path is None else Path(path)
    contents: dict[str, str] = {}
    try:
        with tarfile.open(where, "r:*") as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if member.isfile() and name.endswith(".json") and name.startswith(("tests/", "remotes/")):
                    stream = archive.extractfile(member)
                    if stream is not None:
                        contents[name] = stream.read().decode("utf-8")
    except (OSError, tarfile.TarError, UnicodeDecodeError) as error:
        raise DataError(f"{where} can't be read: {error}") from error
    return contents
