"""What models do wrong in calls: each fault breaks one call of a turn and says what is left to read.

READ: one reading remains, the call as it was meant.  ERROR: none remains, or two do: an error, which keeps
the other calls.  EITHER: one of the two.  ANY: what is left may be text, too; each fault says why.  Never
another call, no call that is lost beside the broken one, and no error without a cause.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from .writers import WRITERS, Call, Piece, Pieces, Writer, spelled

READ, ERROR, EITHER, ANY = "read", "error", "either", "any"


@dataclass
class Turn:
    """The calls of a turn, as pieces; `at` is the one to break."""

    format: str
    meant: list[Call]
    at: int
    written: list[Pieces] = field(default_factory=list)
    section: list[str] = field(default_factory=list)
    cut: int = 0
    expect: str = READ
    # the broken call as written, where that is not as it was meant
    read: Call | None = None

    def __post_init__(self) -> None:
        self.written = [self.writer.call(n, *call) for n, call in enumerate(self.meant)]
        self.section = list(self.writer.section)

    @property
    def writer(self) -> Writer:
        return WRITERS[self.format]

    @property
    def call(self) -> Pieces:
        return self.written[self.at]

    @property
    def last(self) -> bool:
        return self.at == len(self.written) - 1

    @property
    def others(self) -> list[Call]:
        return [call for place, call in enumerate(self.meant) if place != self.at]

    def text(self) -> str:
        calls = ["".join(piece.text for piece in call) for call in self.written]
        text = self.section[0] + self.writer.between.join(calls) + self.section[1]
        return text[: len(text) - self.cut] if self.cut else text

    def places(self, *roles: str) -> list[int]:
        return [place for place, piece in enumerate(self.call) if piece.role in roles and piece.text]

    def put(self, place: int, text: str) -> None:
        self.call[place] = Piece(self.call[place].role, text, self.call[place].key)

    def change(self, place: int, old: str, new: str) -> bool:
        """Whether there was something to change."""
        text = self.call[place].text
        self.put(place, text.replace(old, new, 1))
        return old in text and old != new


Fault = Callable[[Turn, random.Random], bool]
"""Breaks the turn; false where there is no such fault in it."""


def one(turn: Turn, rng: random.Random, *roles: str) -> int | None:
    found = turn.places(*roles)
    return rng.choice(found) if found else None


# Nothing wrong, or nothing that matters.


def right(turn: Turn, rng: random.Random) -> bool:
    return True


def spaced(turn: Turn, rng: random.Random) -> bool:
    """Other whitespace at the markers."""
    place = one(turn, rng, "open", "close")
    if place is None or turn.writer.guess:
        return False
    piece = turn.call[place]
    space = rng.choice(["\n", " ", "\n\n", "  \n"])
    turn.put(place, piece.text + space if piece.role == "close" else space + piece.text)
    return True


def other_order(turn: Turn, rng: random.Random) -> bool:
    """The arguments in another order."""
    name, given = turn.meant[turn.at]
    keys = list(given)
    rng.shuffle(keys)
    turn.written[turn.at] = turn.writer.call(turn.at, name, {key: given[key] for key in keys})
    return turn.writer.family != "marked" and len(keys) > 1 and keys != list(given)


def whole_as_fraction(turn: Turn, rng: random.Random) -> bool:
    """5.0 where an integer is asked for."""
    whole = [key for key in ("limit", "nights", "line") if type(turn.meant[turn.at][1].get(key)) is int]
    if not whole:
        return False
    key = rng.choice(whole)
    value = turn.meant[turn.at][1][key]
    for place in turn.places("value"):
        if turn.call[place].key == key:
            return turn.change(place, str(value), f"{value}.0")
    (place,) = turn.places("args") or [0]
    found = re.search(rf"""(["']?{key}["']?(?:: |=)){value}(?=[,}}]|$)""", turn.call[place].text)
    return found is not None and turn.change(place, found.group(), f"{found.group()}.0")


# Markers that are missing.


def no_opener(turn: Turn, rng: random.Random) -> bool:
    """One of the marks that a call begins with."""
    place = one(turn, rng, "open")
    if place is None:
        return False
    marks = re.findall(r"<[^<>]*>\n?|[^<>]+|<[^<>]*$", turn.call[place].text)
    turn.put(place, turn.call[place].text.replace(rng.choice(marks), "", 1))
    turn.expect = (
        ANY  # without its only mark a call is text like any other, to which its neighbours may belong
    )
    return True


def no_section_opener(turn: Turn, rng: random.Random) -> bool:
    """All of it, or its marker but for the bracket behind it."""
    opener = turn.section[0]
    bracket = rng.random() < 0.5 and len(opener) > 1 and opener.rstrip().endswith("[")
    turn.at, turn.section[0] = 0, "[" if bracket else ""
    # calls without marks of their own are told by the marker behind them; a bracket there may close anything
    own = any(len(turn.call[place].text) > 2 for place in turn.places("open"))
    turn.expect = READ if own or len(turn.section[1].strip()) > 1 else ANY
    return bool(opener)


def no_closer(turn: Turn, rng: random.Random) -> bool:
    """At the end of the text or of the section, or with the next call behind it."""
    place = one(turn, rng, "close")
    if place is None:
        return False
    turn.put(place, "")
    if not turn.last and not turn.places("open"):
        turn.expect = EITHER
    # where the text ends behind an argument, further ones may have been cut
    open_end = turn.last and turn.writer.family in ("tagged", "elements") and not turn.section[1]
    # what Python or a bare object does not close may go on
    if turn.writer.family == "python" or turn.writer.guess or open_end:
        turn.expect = EITHER
    return True


def no_section_closer(turn: Turn, rng: random.Random) -> bool:
    turn.at, turn.section[1] = len(turn.meant) - 1, ""
    if turn.writer.guess:
        turn.expect = EITHER  # as above
    return bool(turn.writer.section[1])


def only_the_end(turn: Turn, rng: random.Random) -> bool:
    """A part of the last closers alone is missing: a stop took it."""
    turn.at = len(turn.meant) - 1
    closer = (turn.call[-1].text if turn.call[-1].role == "close" else "") + turn.section[1]
    closer = closer.rstrip("\n")
    if turn.writer.family == "python":
        closer = turn.section[1].rstrip("\n")
        turn.expect = EITHER
    if turn.writer.guess:
        turn.expect = EITHER  # as above
    turn.cut = rng.randrange(1, len(closer) + 1) if closer else 0
    if turn.writer.family in ("tagged", "elements"):
        more = turn.writer.call(0, "f", {"a": 1})[3].text
        if more.startswith(closer[: len(closer) - turn.cut]):
            turn.expect = EITHER  # further arguments may have been cut
    return bool(closer)


def no_end_of_value(turn: Turn, rng: random.Random) -> bool:
    place = one(turn, rng, "end")
    if place is None:
        return False
    turn.put(place, "\n" if turn.call[place].text.startswith("\n") else "")
    turn.expect = EITHER  # a text may hold what comes next; a number, or what the schema forbids, may not
    return True


def no_end_of_key(turn: Turn, rng: random.Random) -> bool:
    place = one(turn, rng, "key")
    if place is None:
        return False
    turn.expect = EITHER  # the schema's names may tell where it ended
    return any(turn.change(place, end, "") for end in ("</arg_key>", '">', ">", ":"))


def no_mark(turn: Turn, rng: random.Random) -> bool:
    """One of the two marks around a string."""
    mark = {"gemma4": '<|"|>', "functiongemma": "<escape>"}.get(turn.format)
    place = one(turn, rng, "value")
    if mark is None or place is None or not turn.call[place].text.startswith(mark):
        return False
    text = turn.call[place].text
    turn.put(place, text.removeprefix(mark) if rng.random() < 0.5 else text.removesuffix(mark))
    turn.expect = EITHER  # where another string follows, its marks pair up otherwise
    return text.count(mark) == 2


def no_brace(turn: Turn, rng: random.Random) -> bool:
    """The last brace of the call's object."""
    place = next((n for n in turn.places("frame") if turn.call[n].text == "}"), None)
    if place is None:
        return False
    turn.put(place, "")
    turn.expect = EITHER
    return True


# Arguments written in another way.


def stringified(turn: Turn, rng: random.Random) -> bool:
    place = one(turn, rng, "args")
    if place is None or turn.writer.family != "json":
        return False
    turn.put(place, spelled(turn.call[place].text))
    return True


def like_python(turn: Turn, rng: random.Random) -> bool:
    """The arguments as Python prints them."""
    place = one(turn, rng, "args")
    if place is None or turn.writer.family != "json":
        return False
    text = repr(turn.meant[turn.at][1])
    changed = text != turn.call[place].text
    turn.put(place, text)
    turn.expect = EITHER
    return changed


def last_comma(turn: Turn, rng: random.Random) -> bool:
    place = one(turn, rng, "args")
    if place is None or turn.writer.family != "json" or len(turn.call[place].text) < 3:
        return False
    turn.put(place, turn.call[place].text[:-1] + ",}")
    turn.expect = EITHER
    return True


def brace_too_many(turn: Turn, rng: random.Random) -> bool:
    place = one(turn, rng, "args")
    if place is None or turn.writer.family != "json":
        return False
    turn.call.insert(place + 1, Piece("frame", "}"))
    turn.expect = EITHER
    return True


def value_as_text(turn: Turn, rng: random.Random) -> bool:
    """A number in quotes."""
    place = one(turn, rng, "args")
    if place is None:
        return False
    found = re.search(r"(?<=[:=] |.=)-?\d+(\.\d+)?(?=[,}]|$)", turn.call[place].text)
    if not found:
        return False
    turn.expect = EITHER
    text = turn.call[place].text
    turn.put(place, f'{text[: found.start()]}"{found.group()}"{text[found.end() :]}')
    return True


def parenthesis(turn: Turn, rng: random.Random) -> bool:
    """`name(…)` for `name{…}`, or the other way round; arguments in parentheses."""
    if turn.writer.family in ("marked", "python"):
        ends = [n for n in turn.places("frame", "close") if turn.call[n].text in tuple("(){}")]
        for place in ends:
            turn.put(place, turn.call[place].text.translate(str.maketrans("(){}", "{}()")))
    elif turn.places("args"):
        (place,) = turn.places("args")
        turn.put(place, f"({turn.call[place].text})")
    else:
        return False
    python = turn.writer.family == "python" and not turn.writer.guess
    turn.expect = ERROR if python else READ if turn.writer.family == "json" else EITHER
    return True


def not_an_object(turn: Turn, rng: random.Random) -> bool:
    """The arguments as a list."""
    place = one(turn, rng, "args")
    if place is None or turn.writer.family != "json":
        return False
    turn.put(place, f"[{turn.call[place].text}]")
    turn.expect = ERROR
    return True


# Names.


def unknown_tool(turn: Turn, rng: random.Random) -> bool:
    name = turn.meant[turn.at][0]
    turn.put(turn.places("name")[0], rng.choice([name + "_now", name.upper(), name.title(), "tool"]))
    turn.expect = ERROR
    return True


def wrong_case_of_a_key(turn: Turn, rng: random.Random) -> bool:
    """An argument's name; where the schema leaves it free the call is read as it is written."""
    name, given = turn.meant[turn.at]
    if not given:
        return False
    key = rng.choice(list(given))
    changed = {k.upper() if k == key else k: v for k, v in given.items()}
    turn.written[turn.at] = turn.writer.call(turn.at, name, changed)
    turn.expect, turn.read = EITHER, (name, changed)
    # where the format does not tell, a value that no schema speaks of is a text
    told = not isinstance(given[key], bool) if turn.format in ("qwen3_coder", "seed_oss", "mimo") else True
    return told and (turn.format != "minimax_m3" or isinstance(given[key], str))


def wrong_case_of_the_frame(turn: Turn, rng: random.Random) -> bool:
    """ "Name" for "name", `<Parameter=` for `<parameter=`."""
    place = one(turn, rng, "frame", "key", "end")
    if place is None:
        return False
    words = re.findall(
        r"(?<![\w.])(?:name|arguments|parameters?|tool_name|arg_key|arg_value)\b", turn.call[place].text
    )
    turn.expect = READ if turn.writer.family == "json" else EITHER  # a text may hold an element's marker
    return bool(words) and turn.change(place, words[-1], words[-1].title())


def twice(turn: Turn, rng: random.Random) -> bool:
    """An argument comes twice with two values."""
    ends = [n for n in turn.places("value") if turn.call[n].text]
    if not ends or turn.writer.family not in ("tagged", "elements"):
        return False
    place = rng.choice(ends)
    again = turn.call[place - 1 : place + 2]
    turn.written[turn.at] = [*turn.call[: place + 2], *again, *turn.call[place + 2 :]]
    turn.put(place + 3, turn.call[place].text.swapcase() + "1")
    turn.expect = ERROR
    return True


# Text that is too short, or too long.


def cut_inside(turn: Turn, rng: random.Random) -> bool:
    """The budget ends in the arguments."""
    turn.at = len(turn.meant) - 1
    inside = [n for n in turn.places("args", "value") if len(turn.call[n].text) > 1]
    if not inside:
        return False
    place = rng.choice(inside)
    behind = sum(len(piece.text) for piece in turn.call[place + 1 :]) + len(turn.section[1])
    turn.cut = behind + rng.randrange(1, len(turn.call[place].text))
    turn.expect = ANY if turn.writer.guess else ERROR  # a bare object is a call only where it reads as one
    return True


def strange(turn: Turn, rng: random.Random) -> bool:
    """Something that belongs to nothing behind the arguments."""
    place = next((n + 1 for n in turn.places("args", "end")[-1:]), None)
    if place is None or not (turn.places("close") or turn.section[1]):
        return False
    turn.call.insert(place, Piece("frame", rng.choice(["<!>", " ok", "\nDone. ", "```"])))
    turn.expect = EITHER
    return True


def words_between(turn: Turn, rng: random.Random) -> bool:
    """The model says something between two calls of a section."""
    if not turn.section[0] or turn.at == 0:
        return False
    turn.call.insert(0, Piece("frame", "And then:\n"))
    turn.expect = EITHER
    return True


def marker_in_a_value(turn: Turn, rng: random.Random) -> bool:
    """A string holds the markers of calls, which JSON tells from markers."""
    place = one(turn, rng, "args")
    given = turn.meant[turn.at][1]
    texts = [key for key in ("query", "city", "path", "text") if key in given]
    if place is None or turn.writer.family != "json" or not texts:
        return False
    marks = [piece.text for piece in turn.call if piece.role in ("open", "close")] + turn.section
    given[texts[0]] += rng.choice([mark for mark in marks if mark] or ["{"])
    turn.put(place, spelled(given))
    turn.expect = READ
    return True


def fenced(turn: Turn, rng: random.Random) -> bool:
    """A code block around the arguments."""
    place = one(turn, rng, "args")
    if place is None or turn.format == "deepseek_v3":
        return False
    turn.put(place, f"```json\n{turn.call[place].text}\n```")
    turn.expect = READ if turn.writer.family == "json" else EITHER
    return True


def as_openai_writes(turn: Turn, rng: random.Random) -> bool:
    """`{"type": "function", "function": {…}}`."""
    place = next((n for n in turn.places("frame") if turn.call[n].text.endswith('name": "')), None)
    if place is None:
        return False
    turn.put(place, '{"type": "function", "function": ' + turn.call[place].text)
    end = next(n for n in turn.places("frame") if turn.call[n].text == "}")
    turn.put(end, "}}")
    turn.expect = EITHER
    return True


def more_members(turn: Turn, rng: random.Random) -> bool:
    """An id or a type beside name and arguments."""
    place = next((n for n in turn.places("frame") if turn.call[n].text == "}"), None)
    if place is None or turn.writer.family != "json" or turn.format == "apertus":
        return False
    turn.put(place, rng.choice([', "type": "function"}', ', "strict": true}']))
    return True


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (
        right, spaced, other_order, whole_as_fraction, no_opener, no_section_opener, no_closer,
        no_section_closer, only_the_end, no_end_of_value, no_end_of_key, no_mark, no_brace, stringified,
        like_python, last_comma, brace_too_many, value_as_text, parenthesis, not_an_object, unknown_tool,
        wrong_case_of_a_key, wrong_case_of_the_frame, twice, cut_inside, strange, words_between,
        marker_in_a_value, fenced, as_openai_writes, more_members,
    )
}  # fmt: skip


def broken(fault: str, format: str, meant: list[Call], rng: random.Random) -> Turn | None:
    """The calls with the fault in one of them; None: there is no such fault in this format."""
    turn = Turn(format, copy.deepcopy(meant), rng.randrange(len(meant)))
    return turn if FAULTS[fault](turn, rng) else None


def same(one: Call, other: Call) -> bool:
    """Whether two calls are alike, numbers with their types."""
    return one[0] == other[0] and json.dumps(one[1], sort_keys=True) == json.dumps(other[1], sort_keys=True)
