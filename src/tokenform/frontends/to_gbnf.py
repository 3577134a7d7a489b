"""Grammars written out in GBNF, for llama.cpp and what embeds it: llama-server, LM Studio.

Purpose: `grammar.to_gbnf()`: exactly the same texts, where no tokenform is needed to read them.
Invariant: `tf.gbnf` reads the result, and its automaton allows what the grammar's does at every step; what
GBNF can't say is refused, with what it is and what to do.
How: sequences and choices are rules of their parts; the rules of a grammar without a lexer (GBNF, Lark's with
`lexer="dynamic"`) stay rules, without left recursion (`gbnf_rules.py`); what nests without bound in a schema
becomes rules (`schema_rules.py`); every other part, and every terminal,
is walked character by character, and each of its states becomes a rule, `s ::= [a-z] t | ""`.  States that
are equal are one number, so the walk of a regular language ends.
Complexity: O(states * classes of characters); at most `STATES` states.
Rejected: translating schemas keyword by keyword (that is a second set of rules, and llama.cpp's own converter
shows how it drifts); patterns as such (GBNF has no intersection, complement or lookahead, states need none).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from tokenform import _core
from tokenform.errors import InvalidGrammar, LimitExceeded
from tokenform.frontends import forms
from tokenform.frontends.byte_vocabulary import byte_vocabulary
from tokenform.frontends.forms import Form
from tokenform.frontends.gbnf_rules import Rules, without_left_recursion
from tokenform.frontends.grammar_structure import TerminalEntry
from tokenform.frontends.schema_recursion import read_recursive
from tokenform.frontends.schema_rules import schema_rules

STATES = 4000
"""Most states of a part."""

_BEYOND = (
    "{what} needs more than {bound} in GBNF. What does that: documents that nest without bound, "
    "undeclared keys (none comes twice, which GBNF can't say), uniqueItems, multipleOf, long counts "
    "(maxLength, maxItems), numbers in every spelling, a lexer's longest match. What helps: smaller bounds, "
    "json_schema(schema, additional='forbid', numbers='canonical', whitespace='compact'), "
    "lark(text, lexer='dynamic')."
)


def to_gbnf(form: Form, name: str) -> str:
    """A form as a grammar in GBNF, whose start rule is `root`.

    Raises:
        LimitExceeded: the language needs more states than `STATES`, or more work than a call may do: it is
            not regular, or counts far.
        InvalidGrammar: control tokens, which GBNF spells by their text alone.
    """
    writer = _GbnfWriter(name)
    root = writer.symbol(form)
    return "\n".join([f"root ::= {root}", *writer.lines]) + "\n"


class _GbnfWriter:
    """Rules as they come; each part's names begin with a number of their own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []
        self._parts = 0
        self._work = _core.Limits().work  # what is left of it for all walks together

    def symbol(self, form: Form) -> str:
        """The name of a rule for a form."""
        self._parts += 1
        own = f"p{self._parts}"
        if "sequence" in form:
            parts = [self.symbol(part) for part in form["sequence"]]
            self.lines.append(f"{own} ::= {' '.join(parts)}")
        elif "choice" in form:
            parts = [self.symbol(part) for part in form["choice"]]
            self.lines.append(f"{own} ::= {' | '.join(parts)}")
        elif (structure := _structure(form)) is not None:
            self._rules(own, structure)
        elif "schema" in form and not form.get("holes") and (root := read_recursive(form["schema"])):
            self._recursive(own, form, root)
        elif "special" in form:
            raise InvalidGrammar(f"GBNF has no control tokens, and {self.name} has {form['special']!r}.")
        elif "counted" in form:
            raise InvalidGrammar(f"GBNF counts no tokens, and {self.name} has max_tokens; use max_chars.")
        else:
            self._walk(own, form)
        return own

    def _rules(self, own: str, structure: dict[str, Any]) -> None:
        """The rules of a grammar without a lexer; what it ignores may stand around every terminal."""
        ignored = f"{own} ignored"  # names of this shape are no names of a rule
        rules: Rules = {ignored: [(), *((name, ignored) for name in structure["ignore"])]}
        parts = {name: self.symbol(form) for name, form in structure.get("parts", {}).items()}
        written = dict(parts)
        for entry in structure["terminals"]:
            written[entry["name"]] = self._terminal(entry)
        around = (ignored,) if structure["ignore"] else ()
        for rule in structure["rules"]:
            way = [
                part
                for symbol in rule["expansion"]
                for part in ((symbol, *around) if symbol in written else (symbol,))
            ]
            rules.setdefault(rule["origin"], []).append(tuple(way))
        for order in structure.get("orders", ()):
            rules |= self._orders(order)
        begin = f"{own} begin"
        rules[begin] = [(*around, structure["start"])]
        if not around:
            del rules[ignored]
        rules, begin = without_left_recursion(rules, begin)
        self._write(own, rules, begin, written)

    def _recursive(self, own: str, form: Form, root: Any) -> None:
        """The rules of a schema whose documents nest without bound."""
        forms.compiled(form, self.name).compile(byte_vocabulary())  # raises where there is no document
        parts: dict[str, str] = {}

        def leaf(schema: Any) -> str:
            text = json.dumps(schema)
            if text not in parts:
                parts[text] = self.symbol({**form, "schema": text})
            return parts[text]

        rules, begin = without_left_recursion(*schema_rules(root, form["options"], leaf))
        self._write(own, rules, begin, {})

    def _write(self, own: str, rules: Rules, begin: str, written: dict[str, str]) -> None:
        """Rules under names of their own; other symbols stand as they are, or as they are written."""
        names = {begin: own}
        for name in rules:
            names.setdefault(name, f"{own}-{len(names)}")
        for name, ways in rules.items():
            spelled = (
                " ".join(names.get(one) or written.get(one, one) for one in way) or '""' for way in ways
            )
            self.lines.append(f"{names[name]} ::= {' | '.join(spelled)}")

    def _orders(self, order: dict[str, Any]) -> Rules:
        """Members in any order as a rule for each set of them that may still come."""
        members, others = order["members"], order["others"]
        separator = (order["separator"],) if order["separator"] else ()
        everything = frozenset(range(len(members)))

        def name(left: frozenset[int], begun: bool) -> str:
            return f"{order['origin']}: {sorted(left)}" if begun else order["origin"]

        rules: Rules = {}
        waiting = [(everything, False)]
        for left, begun in waiting:
            before = separator if begun else ()
            ways = [(*before, members[one][0], name(left - {one}, True)) for one in sorted(left)]
            if others is not None:
                ways.append((*before, others, name(left, True)))
            if not any(members[one][1] for one in left):
                ways.append(())
            rules[name(left, begun)] = ways
            if len(rules) > STATES:
                raise _beyond(f"{len(members)} members in any order of {self.name}")
            rests = [left - {one} for one in left] + ([left] if others is not None else [])
            waiting += [(rest, True) for rest in rests if name(rest, True) not in rules]
        return rules

    def _terminal(self, entry: TerminalEntry) -> str:
        """A terminal as a literal, a class, or the name of a rule."""
        if entry["literal"] is not None and "i" not in entry["flags"]:
            return '"' + "".join(_char(ord(one)) for one in entry["literal"]) + '"'
        self._parts += 1
        own = f"p{self._parts}"
        flags = "".join(sorted(set(entry["flags"]) & set("imsx")))
        pattern = f"(?{flags}:{entry['pattern']})" if flags else entry["pattern"]
        before = len(self.lines)
        self._walk(own, {"language": {"regex": pattern, "dialect": "python"}})
        new = self.lines[before:]
        one = new[0].removeprefix(f"{own} ::= ").removesuffix(f" {own}-1")
        if new[1:] == [f'{own}-1 ::= ""'] and " " not in one:  # a class needs no rules
            del self.lines[before:]
            return one
        return own

    def _walk(self, own: str, form: Form) -> None:
        """A rule for each state of a part, the start first."""
        what = f"a part of {self.name}" if self._parts > 1 else self.name
        automaton = forms.compiled(form, what).compile(byte_vocabulary())
        walker = _Walker(automaton, self._work, what)
        names = {automaton.start: own}
        waiting = [automaton.start]
        for state in waiting:
            targets: dict[Any, list[tuple[int, int]]] = {}
            for low, high, target in walker.steps(state):
                targets.setdefault(target, []).append((low, high))
            ways = []
            for target, ranges in targets.items():
                if target not in names:
                    if len(names) >= STATES:
                        raise _beyond(what)
                    names[target] = f"{own}-{len(names)}"
                    waiting.append(target)
                ways.append(f"{_class(ranges)} {names[target]}")
            if automaton.is_accepting(state):
                ways.append('""')
            self.lines.append(f"{names[state]} ::= {' | '.join(ways)}")
        self._work -= walker.work()


def _beyond(what: str, bound: str = f"{STATES} states") -> LimitExceeded:
    return LimitExceeded(_BEYOND.format(what=what, bound=bound))


def _structure(form: Form) -> dict[str, Any] | None:
    """The rules of a form whose lexer, if it has one, cuts the text in every way."""
    if "gbnf" in form:
        found: dict[str, Any] = json.loads(_core.read_gbnf(form["gbnf"], form["start"]))
        return found
    structure: dict[str, Any] | None = form.get("grammar")
    if structure is None or structure["lexer"] != "dynamic" or structure["indenter"] is not None:
        return None
    return None if any(map(_looks_around, structure["terminals"])) else structure


def _looks_around(entry: TerminalEntry) -> bool:
    """Whether a terminal's pattern asks for what stands before or after it, or may."""
    return (
        entry["kind"] == "re"
        and re.search(r"\(\?<?[=!]|\\[bBAZ]|(?<![\[\\])\^|\$", entry["pattern"]) is not None
    )


class _Walker:
    """The steps of an automaton over bytes by whole characters.

    Raises:
        LimitExceeded: they need more than `most` units of work in all, or one more than a call may do.
    """

    def __init__(self, automaton: _core.TokenAutomaton, most: int, what: str) -> None:
        self._automaton = automaton
        self._most = most
        self._what = what
        self._rests: dict[tuple[Any, int], list[tuple[int, int, Any]]] = {}

    def work(self) -> int:
        """Units of work so far."""
        return self._automaton.stats()["work"]

    def steps(self, state: Any) -> Iterator[tuple[int, int, Any]]:
        """Ranges of code points and the state after each."""
        for first, last, target in self._bytes_of(state):
            if first < 0x80:
                yield first, min(last, 0x7F), target
                first = 0x80
            for lead in range(first, last + 1):
                more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
                begin = (lead & (0x3F >> more)) << 6 * more
                for low, high, end in self._rest(target, more):
                    yield begin + low, begin + high, end

    def _rest(self, state: Any, more: int) -> list[tuple[int, int, Any]]:
        """The same for the bytes that a character still has, as offsets."""
        if more == 0:
            return [(0, 0, state)]
        found = self._rests.get((state, more))
        if found is None:
            found = []
            for first, last, target in self._bytes_of(state):
                for byte in range(first, last + 1):
                    begin = (byte & 0x3F) << 6 * (more - 1)
                    for low, high, end in self._rest(target, more - 1):
                        if found and found[-1][2] == end and found[-1][1] + 1 == begin + low:
                            found[-1] = (found[-1][0], begin + high, end)
                        else:
                            found.append((begin + low, begin + high, end))
            self._rests[state, more] = found
        return found

    def _bytes_of(self, state: Any) -> Iterator[tuple[int, int, Any]]:
        """Ranges of bytes and the state after each."""
        first = last = -2
        target: Any = None
        for byte, after in self._after(state):
            if byte == last + 1 and after == target:
                last = byte
                continue
            if last >= 0:
                yield first, last, target
            first, last, target = byte, byte, after
        if last >= 0:
            yield first, last, target

    def _after(self, state: Any) -> list[tuple[int, Any]]:
        """Each byte that may come, and the state after it."""
        bound = f"{_core.Limits().work} steps of work (Limits.work)"
        if self.work() > self._most:
            raise _beyond(self._what, bound)
        try:
            allowed = self._automaton.allowed_tokens(state).tolist()
            return [(byte, self._automaton.advance(state, byte)) for byte in allowed if byte < 256]
        except LimitExceeded as error:
            raise _beyond(self._what, bound) from error


def _class(ranges: list[tuple[int, int]]) -> str:
    """A character class; ranges that touch are one."""
    ordered = np.array(sorted(ranges)).tolist()
    joined = [ordered[0]]
    for low, high in ordered[1:]:
        if low <= joined[-1][1] + 1:
            joined[-1][1] = max(joined[-1][1], high)
        else:
            joined.append([low, high])
    return "[" + "".join(_char(a) if a == b else f"{_char(a)}-{_char(b)}" for a, b in joined) + "]"


def _char(point: int) -> str:
    if 0x20 < point < 0x7F and chr(point) not in r"[]\"^-":
        return chr(point)
    if point < 0x100:
        return f"\\x{point:02X}"
    return f"\\u{point:04X}" if point < 0x10000 else f"\\U{point:08X}"
