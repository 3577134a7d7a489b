"""JSON values and Python literals, read character by character as they arrive.

Purpose: a value is checked while it is read and handed on as JSON text at once, so that a stream of pieces
becomes a stream of argument fragments.
Invariant: the fragments of a value join to one valid JSON text; a fault is an error at the character where
the text stops being the beginning of any value.
Complexity: linear in the text; nesting is bounded by `DEPTH`.
Source: RFC 8259; the Python language reference, section 2.4.
Rejected: partial parsers that repair what is cut off (a repaired call is one that the model did not write).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence

from tokenform.errors import ToolError
from tokenform.frontends.tools.source import Reading, Source

Emit = Callable[[str], None]
DEPTH = 200
# Characters and whole escapes of a JSON string, so many at a time (a longer match would be kept on a stack).
_PLAIN = re.compile(r'(?:[^"\\\x00-\x1f]+|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){0,1000}')
_WORD = re.compile(r"[\w.+-]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_PYTHON_NUMBER = re.compile(r"[+-]?([0-9](_?[0-9])*(\.([0-9](_?[0-9])*)?)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_ESCAPES = {
    "\\": "\\",
    "'": "'",
    '"': '"',
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "b": "\b",
    "f": "\f",
    "a": "\a",
    "v": "\v",
    "\n": "",
}


def fail(source: Source, message: str, *, asked: bool = True) -> ToolError:
    """The error for a fault at the present place.

    asked: the next character was waited for, so that an end is known to be one.
    """
    cut = asked and source.ended and source.spent
    error = ToolError(f"{message}, {'where the text is cut' if cut else f'at character {source.position}'}")
    error.cut = cut
    return error


def json_value(source: Source, emit: Emit, loose: bool = False) -> Reading[None]:
    """One JSON value; whitespace inside is handed on, too.

    loose: what has one reading although it is no JSON is taken for what it means: strings in other quotes,
    True, False and None, a comma before a closing bracket.
    """
    closers: list[str] = []
    while True:
        emit((yield from source.blank()))
        first = yield from source.peek()
        if first in ("{", "["):
            emit(source.take(1))
            closers.append("}" if first == "{" else "]")
            if len(closers) > DEPTH:
                raise fail(source, f"JSON is nested deeper than {DEPTH}", asked=False)
            emit((yield from source.blank()))
            if not (yield from source.matches(closers[-1])):
                if first == "{":
                    yield from _key(source, emit, loose)
                continue
            emit(source.take(1))
            closers.pop()
        elif first == '"':
            yield from json_string(source, emit)
        elif loose and first == "'":
            yield from _python_part(source, first, _quoted(emit))
            emit('"')
        else:
            yield from _scalar(source, emit, loose)
        while closers:
            emit((yield from source.blank()))
            following = yield from source.peek()
            if following == ",":
                source.take(1)
                space = yield from source.blank()
                if loose and (yield from source.matches(closers[-1])):
                    continue
                emit("," + space)
                if closers[-1] == "}":
                    yield from _key(source, emit, loose)
                break
            if following != closers[-1]:
                raise fail(source, f"JSON needs ',' or {closers[-1]!r} here, not {following!r}")
            emit(source.take(1))
            closers.pop()
        else:
            return


def _quoted(emit: Emit) -> Emit:
    """Hands on what stands in a string of Python, behind the opening quote of JSON."""
    emit('"')
    return lambda text: emit(inside_string(text))


def _key(source: Source, emit: Emit, loose: bool) -> Reading[None]:
    if loose and (yield from source.matches("'")):
        yield from _python_part(source, "'", _quoted(emit))
        emit('"')
    else:
        yield from json_string(source, emit)
    emit((yield from source.blank()))
    if not (yield from source.accept(":")):
        raise fail(source, "JSON needs ':' after a key")
    emit(":")


def _scalar(source: Source, emit: Emit, loose: bool) -> Reading[None]:
    word = yield from source.word(_WORD)
    word = _WORDS.get(word, word) if loose else word
    if word not in ("true", "false", "null") and not _NUMBER.fullmatch(word):
        raise fail(source, f"{word!r} is no JSON value" if word else "JSON needs a value here")
    _check_finite(source, word)
    emit(word)


def _check_finite(source: Source, word: str) -> None:
    """Refuse a number that a float can't hold: it would become `Infinity`, which is no JSON."""
    if word[-1:].isdigit() and any(c in word for c in ".eE") and math.isinf(float(word)):
        raise fail(source, f"{word[:40]!r} is too large a number")


def json_string(source: Source, emit: Emit) -> Reading[None]:
    """One JSON string, quotes included, as it is written."""
    if not (yield from source.accept('"')):
        raise fail(source, "JSON needs a string here")
    emit('"')
    while True:
        yield from source.run(_PLAIN, emit)
        following = yield from source.peek(1)
        if following == '"':
            emit(source.take(1))
            return
        if not following:
            raise fail(source, "a JSON string does not end")
        if following != "\\":
            # a run of the greatest length ends anywhere
            if following < " ":
                raise fail(source, "a JSON string has a control character")
            continue
        escape = yield from source.peek(2)
        size = 6 if escape[1:] == "u" else 2
        escape = yield from source.peek(size)
        if len(escape) < size:
            source.take(len(escape))
            raise fail(source, "a JSON string does not end")
        if not _PLAIN.fullmatch(escape):
            raise fail(source, f"{escape!r} is no JSON escape")


def whole_json_string(source: Source) -> Reading[str]:
    """One JSON string, decoded."""
    parts: list[str] = []
    yield from json_string(source, parts.append)
    return str(json.loads("".join(parts)))


def python_value(source: Source, emit: Emit, depth: int = 0) -> Reading[None]:
    """One Python literal, handed on as JSON."""
    if depth > DEPTH:
        raise fail(source, f"literals are nested deeper than {DEPTH}", asked=False)
    first = yield from source.peek()
    if first in ("'", '"') and first:
        yield from _python_string(source, emit)
    elif first in ("[", "("):
        source.take(1)
        yield from _python_list(source, emit, "]" if first == "[" else ")", depth)
    elif first == "{":
        source.take(1)
        yield from _python_dict(source, emit, depth)
    else:
        yield from _python_word(source, emit)


def _python_word(source: Source, emit: Emit) -> Reading[None]:
    word = yield from source.word(_WORD)
    if word in _WORDS:
        emit(_WORDS[word])
    elif _PYTHON_NUMBER.fullmatch(word):
        digits = word.replace("_", "").lstrip("+")
        _check_finite(source, digits)
        emit(digits if _NUMBER.fullmatch(digits) else json.dumps(float(digits)))
    else:
        raise fail(source, f"{word!r} is no Python literal" if word else "a Python literal is needed here")


def _python_list(source: Source, emit: Emit, closer: str, depth: int, first: str = "") -> Reading[None]:
    """The items up to the closer; first: one that was read already."""
    emit("[" + first)
    between = ", " if first else ""
    yield from comma(source, closer) if first else source.blank()
    while not (yield from source.accept(closer)):
        emit(between)
        between = ", "
        yield from python_value(source, emit, depth + 1)
        yield from comma(source, closer)
    emit("]")


def _python_dict(source: Source, emit: Emit, depth: int) -> Reading[None]:
    """A dictionary; a set is read as a list."""
    yield from source.blank()
    if (yield from source.peek()) not in ("'", '"', "}"):
        yield from _python_list(source, emit, "}", depth)
        return
    between = "{"
    while not (yield from source.accept("}")):
        if (yield from source.peek()) not in ("'", '"'):
            raise fail(source, "the keys of a dictionary must be strings")
        key: list[str] = []
        yield from _python_string(source, key.append)
        yield from source.blank()
        if not (yield from source.accept(":")):
            if between != "{":
                raise fail(source, "a dictionary needs ':' after a key")
            yield from _python_list(source, emit, "}", depth, "".join(key))
            return
        emit(between + "".join(key) + ": ")
        between = ", "
        yield from source.blank()
        yield from python_value(source, emit, depth + 1)
        yield from comma(source, "}")
    emit("{}" if between == "{" else "}")


def comma(source: Source, closer: str) -> Reading[None]:
    yield from source.blank()
    if not (yield from source.accept(",")) and not (yield from source.matches(closer)):
        raise fail(source, f"',' or {closer!r} is needed here")
    yield from source.blank()


# Characters and short escapes of a Python string, so many at a time.
_RUNS = {quote: re.compile(rf"(?:[^{quote}\\]+|\\[^xuU0-7]){{0,1000}}", re.DOTALL) for quote in ("'", '"')}
_SHORT = re.compile(r"\\(.)", re.DOTALL)


def _unescaped(text: str) -> str:
    """Text with short escapes, as it is meant; an escape that Python does not know is itself."""
    return _SHORT.sub(lambda m: _ESCAPES.get(m[1], m[0]), text)


def _python_string(source: Source, emit: Emit) -> Reading[None]:
    """One string, or several that stand side by side, which Python joins."""
    emit('"')
    following = yield from source.peek()
    while following in ("'", '"'):
        yield from _python_part(source, following, lambda text: emit(inside_string(text)))
        mark = source.mark()
        yield from source.blank()
        following = yield from source.peek()
        if following not in ("'", '"'):
            source.back(mark)
        source.release(mark)
    emit('"')


def _python_part(source: Source, quote: str, emit: Emit) -> Reading[None]:
    """What stands between two quotes, or between two triples of them."""
    if (yield from source.matches(quote * 3)):
        quote *= 3
    source.take(len(quote))
    while True:
        yield from source.run(_RUNS[quote[0]], lambda text: emit(_unescaped(text)))
        if (yield from source.accept(quote)):
            return
        following = yield from source.peek()
        if not following:
            raise fail(source, "a Python string does not end")
        if following == quote[0]:
            emit(source.take(1))
        elif following == "\\":
            emit((yield from _python_escape(source)))


def _python_escape(source: Source) -> Reading[str]:
    """An escape of digits; the text ends after a backslash where it is none."""
    pair = yield from source.peek(2)
    kind = pair[1:]
    for letter, digits in (("x", 2), ("u", 4), ("U", 8)):
        if kind == letter:
            text = yield from source.peek(2 + digits)
            if not re.fullmatch(rf"\\.[0-9a-fA-F]{{{digits}}}", text) or int(text[2:], 16) > 0x10FFFF:
                raise fail(source, f"{text!r} is no Python escape")
            source.take(len(text))
            return chr(int(text[2:], 16))
    if kind and kind in "01234567":
        text = yield from source.peek(4)
        found = re.match(r"\\[0-7]{1,3}", text)
        source.take(found.end() if found else 2)
        return chr(int(found.group()[1:], 8)) if found else ""
    if not kind:
        source.take(1)
        raise fail(source, "a Python string does not end")
    return ""


def inside_string(text: str) -> str:
    """Text as it stands between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def object_in_string(text: str) -> str | None:
    """The object that a JSON string holds as JSON once more."""
    try:
        inside = json.loads(text)
        return inside if isinstance(inside, str) and isinstance(json.loads(inside), dict) else None
    except (ValueError, RecursionError):
        return None


_BRACKETS = dict(zip("([{", ")]}", strict=True))


def passed_over(source: Source, start: int, marks: Sequence[str]) -> Reading[bool]:
    """Whether a value in brackets stands at `start`, however wrong it is inside: it is taken.

    marks: where one of these comes first there is none, and nothing is taken.
    """
    here, depth = source.mark(), 0
    source.back(start)
    stops = [*_BRACKETS, *_BRACKETS.values(), '"', "'", *marks]
    while True:
        stop = yield from source.until(stops, lambda text: None)
        if stop is None or stop in marks:
            break
        source.take(1)
        if stop in ('"', "'"):
            if depth and not (yield from _string_over(source, stop)):
                break
        else:
            depth += 1 if stop in _BRACKETS else -1
        if depth <= 0 and stop in _BRACKETS.values():
            break
    found = stop is not None and stop not in marks and depth == 0
    if not found:
        source.back(here)
    source.release(here)
    return found


def _string_over(source: Source, quote: str) -> Reading[bool]:
    """Whether a string ends, behind its opening quote; it is taken."""
    while (stop := (yield from source.until([quote, "\\"], lambda text: None))) == "\\":
        source.take(len((yield from source.peek(2))))
    if stop is not None:
        source.take(1)
    return stop is not None
