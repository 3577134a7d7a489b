"""Do the default options take what writers of JSON write?

    python -m benchmarks.suites writers
    python -m benchmarks.suites writers --limit 500 --show 20

Purpose: the valid documents of MaskBench, each as `json.dumps` writes it in all its forms, `JSON.stringify`,
serde, Go and PHP; the defaults must take them.
Invariant: a text counts where the data set calls the document valid and the engine takes the text with every
spelling at "any" and the keys in declared order; so what is refused here is refused for its spelling.
Complexity: two automata a schema, one step a byte of each form.
Rejected: a validator's verdict once more (the data set has it, and validators do not see the spelling).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tokenform.errors import TokenformError
from tokenform_bench.data import Case
from tokenform_bench.documents import has_lone_surrogate
from tokenform_bench.tables import text_table

from .maskcheck import byte_vocabulary, rejected_at

ANY = {"order": "declared", "whitespace": "any", "numbers": "any", "strings": "any"}
MOST = 200_000
"""Characters of a document that is judged."""

_raw = partial(json.dumps, ensure_ascii=False)
_HTML = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def _script_number(value: float) -> str:
    """As ECMAScript and Go write a double: no needless fraction, digits alone from 1e-6 to 1e21."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    if 1e-6 <= abs(value) < 1e-4:  # where Python has an exponent already
        digits, exponent = repr(value).split("e-") if "e-" in repr(value) else (repr(value), "0")
        shift = len(digits.partition(".")[2]) + int(exponent)
        return f"{value:.{shift}f}"
    return re.sub(r"e([+-])0", r"e\1", repr(value))


def _rust_number(value: float) -> str:
    """As serde_json writes a double: `1.0`, `1e16`, `1e-7`."""
    return re.sub(r"e(-?)\+?0?", r"e\1", repr(value))


def _write(
    data: Any,
    indent: str | None,
    number: Callable[[float], str],
    string: Callable[[str], str],
    line: str = "\n",
) -> str:
    """The document, compact or indented, with numbers and strings as told."""
    more = line + (indent or "")
    inner = partial(_write, indent=indent, number=number, string=string, line=more)
    if isinstance(data, dict):
        colon = ":" if indent is None else ": "
        parts, ends = [string(key) + colon + inner(value) for key, value in data.items()], "{}"
    elif isinstance(data, list):
        parts, ends = [inner(item) for item in data], "[]"
    elif isinstance(data, str):
        return string(data)
    else:
        return number(data) if isinstance(data, float) else json.dumps(data)
    if indent is None or not parts:
        return ends[0] + ",".join(parts) + ends[1]
    return ends[0] + more + f",{more}".join(parts) + line + ends[1]


def _go(text: str) -> str:
    return _raw(text).translate(_HTML)


FORMS: dict[str, Callable[[Any], str]] = {
    "json.dumps": json.dumps,
    "json.dumps, ensure_ascii=False": _raw,
    "json.dumps, compact": partial(json.dumps, separators=(",", ":")),
    "json.dumps, indent=0": partial(json.dumps, indent=0),
    "json.dumps, indent=1": partial(json.dumps, indent=1),
    "json.dumps, indent=2": partial(json.dumps, indent=2),
    "json.dumps, indent=4, raw": partial(_raw, indent=4),
    "json.dumps, indent=tab": partial(json.dumps, indent="\t"),
    "JSON.stringify": partial(_write, indent=None, number=_script_number, string=_raw),
    "JSON.stringify, 2": partial(_write, indent="  ", number=_script_number, string=_raw),
    "JSON.stringify, tab": partial(_write, indent="\t", number=_script_number, string=_raw),
    "serde_json": partial(_write, indent=None, number=_rust_number, string=_raw),
    "serde_json, pretty": partial(_write, indent="  ", number=_rust_number, string=_raw),
    "Go": partial(_write, indent=None, number=_script_number, string=_go),
    "Go, indent": partial(_write, indent="\t", number=_script_number, string=_go),
    "PHP": lambda data: json.dumps(data, separators=(",", ":")).replace("/", "\\/"),
}
"""The texts that writers write; keys in the document's own order."""


@dataclass
class Taken:
    """Texts by form.

    Attributes:
        judged: how many, by form.
        refused: form, id of the schema, and the place in the text.
        left_out: what is not judged, by the reason.
    """

    judged: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[str, str, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """Of the texts that were judged, those taken."""
        return 1 - len(self.refused) / max(1, self.judged.total())

    def report(self, show: int = 20) -> str:
        refused = Counter(one[0] for one in self.refused)
        rows = [[form, str(self.judged[form]), str(refused[form])] for form in FORMS]
        rows.append(["all", str(self.judged.total()), f"{len(self.refused)} ({1 - self.share:.4%})"])
        left = ", ".join(f"{count} {reason}" for reason, count in self.left_out.most_common())
        why = [f"{form}, {name}: {said}" for form, name, said in self.refused[:show]]
        return "\n".join(
            [text_table(["form", "texts", "refused"], rows), f"left out: {left or 'none'}", *why]
        )


def judge(cases: Iterable[Case], **options: Any) -> Taken:
    """Judges the valid documents of the cases in every form under the engine's defaults, or options.

    >>> judge([]).share
    1.0
    """
    import tokenform as tf

    vocabulary = byte_vocabulary()
    taken = Taken()
    for case in cases:
        valid = [document.data for document in case.documents if document.valid]
        try:
            loose = tf.json_schema(case.schema, **ANY).compile(vocabulary)  # type: ignore[arg-type]
            default = tf.json_schema(case.schema, **options).compile(vocabulary)
        except TokenformError:
            taken.left_out["documents of a schema that is refused"] += len(valid)
            continue
        for data in valid:
            if has_lone_surrogate(data) or len(json.dumps(data)) > MOST:
                taken.left_out["documents with a lone surrogate, or too long"] += 1
                continue
            for form, write in FORMS.items():
                _judge(form, case.id, write(data).encode(), (loose, default), taken)
    return taken


def _judge(form: str, name: str, text: bytes, automata: tuple[Any, Any], taken: Taken) -> None:
    loose, default = automata
    try:
        right = default.matches(text)
        if not right and not loose.matches(text):
            taken.left_out["texts in another order, or of another type as they are spelled"] += 1
            return
    except TokenformError:
        taken.left_out["texts past a limit"] += 1
        return
    taken.judged[form] += 1
    if not right:
        at = rejected_at(default, text)
        place = (
            text[max(0, at - 30) : at].decode("utf-8", "replace"),
            text[at : at + 10].decode("utf-8", "replace"),
        )
        taken.refused.append((form, name, f"after {place[0]!r} not {place[1]!r}"))
