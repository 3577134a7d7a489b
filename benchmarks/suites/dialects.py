"""A grammar of the library in the languages of the engines beside it.

Purpose: one grammar for all engines of a comparison: Lark's text for tokenform, llguidance's dialect of it
(no lookaheads: a difference of two patterns instead), Lark without either for GLRMask (a name that is no
keyword is a plain pattern, made of the trie of the keywords), and EBNF without a lexer for XGrammar.
Invariant: every text of the grammar is accepted by each translation. XGrammar's accepts more: it has no
lexer, so a name may be a keyword there, and two words may stand side by side.
Complexity: linear in the grammar.
Rejected: grammars written by hand for each engine, which would differ in more than the language.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

from tokenform.frontends.grammar_structure import GrammarStructure, TerminalEntry
from tokenform.frontends.lark_reader import read_lark, read_options

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_parse

# `/(?!(?:if|else)(?![a-z0-9_$]))[a-z_][a-z0-9_$]*/i`: names that are none of those words
_EXCLUDED = re.compile(r"^(\w+): /\(\?!\(\?:(.*)\)(?:\\b|\(\?!\[[^\]]*\]\))\)(.*)/(i?)$", re.MULTILINE)


def dialects(text: str) -> dict[str, str]:
    """The grammar as `lark` (as it is), `llguidance`, `glrmask` and `ebnf`.

    A grammar of indented text has the first alone: the other languages can't say where a block ends.
    """
    structure = read_lark(text, start=read_options(text)["start"])
    if structure["indenter"] is not None:
        return {"lark": text}
    known = {"llguidance": "/{pattern}/{flags} & ~/{words}/{flags}", "glrmask": "/{names}/{flags}"}
    spoken = {engine: _without_lookaheads(text, form) for engine, form in known.items()}
    return {"lark": text, **spoken, "ebnf": _ebnf(structure)}


def _without_lookaheads(text: str, form: str) -> str:
    """The grammar with its names that are no keywords in this form, and without priorities of terminals."""
    start = read_options(text)["start"]

    def difference(found: re.Match[str]) -> str:
        name, words, pattern, flags = found.groups()
        return f"{name}: " + form.format(
            pattern=pattern, words=words, flags=flags, names=other_names(words, pattern)
        )

    out = _EXCLUDED.sub(difference, text)
    out = re.sub(r"^([A-Z_]+)\.-?\d+:", r"\1:", out, flags=re.MULTILINE)
    return out if start == "start" else f"start: {start}\n{out}"


def other_names(words: str, pattern: str) -> str:
    """A pattern without lookaheads of the names `[…][…]*` that are none of the words of a finite pattern."""
    first, (_, (_, _, ((_, rest),))) = sre_parse.parse(pattern)
    trie: dict[str, Any] = {}
    for word in _spelled(sre_parse.parse(words)):
        node = trie
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    more = _letters(rest)

    def after(node: dict[str, Any], letters: set[str]) -> str:
        others = "".join(re.escape(letter) for letter in sorted(letters - node.keys()))
        ways = [f"[{others}][{''.join(map(re.escape, sorted(more)))}]*"]
        ways += [re.escape(letter) + after(node[letter], more) for letter in sorted(node.keys() - {""})]
        return f"({'|'.join(ways)}){'' if '' in node or node is trie else '?'}"

    return after(trie, _letters(first[1]))


def _letters(ranges: Any) -> set[str]:
    return {chr(at) for kind, part in ranges for a, b in _ranges(str(kind), part) for at in range(a, b + 1)}


def _spelled(items: Any) -> list[str]:
    """The texts of a finite pattern."""
    texts = [""]
    for op, value in items:
        match str(op):
            case "LITERAL":
                parts = [chr(value)]
            case "BRANCH":
                parts = [text for branch in value[1] for text in _spelled(branch)]
            case "SUBPATTERN":
                parts = _spelled(value[3])
            case "IN":
                parts = sorted(_letters(value))
            case "MAX_REPEAT" if value[:2] == (0, 1):
                parts = ["", *_spelled(value[2])]
            case other:
                raise ValueError(f"words have no {other}; leave the grammar out of the comparison")
        texts = [text + part for text in texts for part in parts]
    return texts


def _ebnf(structure: GrammarStructure) -> str:
    """Rules over characters: what is ignored may stand behind every terminal and before the first."""
    origins = list(dict.fromkeys(rule["origin"] for rule in structure["rules"]))
    names = {origin: f"r{i}" for i, origin in enumerate(origins)}
    names |= {entry["name"]: f"t{i}" for i, entry in enumerate(structure["terminals"])}
    lines = [f"root ::= skip {names[structure['start']]}"]
    for origin in origins:
        bodies = [rule["expansion"] for rule in structure["rules"] if rule["origin"] == origin]
        shown = [" ".join(names[symbol] for symbol in body) or '""' for body in bodies]
        lines.append(f"{names[origin]} ::= {' | '.join(shown)}")
    ignored = [entry for entry in structure["terminals"] if entry["name"] in structure["ignore"]]
    for entry in structure["terminals"]:
        skip = "" if entry in ignored else " skip"
        lines.append(f"{names[entry['name']]} ::= {_terminal(entry)}{skip}")
    some = " | ".join(names[entry["name"]] for entry in ignored)
    lines.append(f"skip ::= ({some})*" if ignored else 'skip ::= ""')
    return "\n".join(lines) + "\n"


def _terminal(entry: TerminalEntry) -> str:
    flags = re.IGNORECASE if "i" in entry["flags"] else 0
    source = re.escape(entry["literal"]) if entry["literal"] is not None else entry["pattern"]
    return _sequence(sre_parse.parse(source, flags), bool(flags))


def _sequence(items: Any, fold: bool) -> str:
    return " ".join(filter(None, (_item(str(op), value, fold) for op, value in items))) or '""'


def _item(op: str, value: Any, fold: bool) -> str:
    match op:
        case "LITERAL":
            return _class([(value, value)], False, fold)
        case "NOT_LITERAL":
            return _class([(value, value)], True, fold)
        case "ANY":
            return r"[^\n]"
        case "IN":
            parts = [(str(kind), part) for kind, part in value]
            negated = parts[0][0] == "NEGATE"
            return _class([r for kind, part in parts for r in _ranges(kind, part)], negated, fold)
        case "BRANCH":
            return f"({' | '.join(_sequence(branch, fold) for branch in value[1])})"
        case "SUBPATTERN":
            return f"({_sequence(value[3], fold)})"
        case "MAX_REPEAT":
            least, most, body = value
            known = {(0, 1): "?", (0, sre_parse.MAXREPEAT): "*", (1, sre_parse.MAXREPEAT): "+"}
            count = known.get((least, most), f"{{{least},{'' if most == sre_parse.MAXREPEAT else most}}}")
            return f"({_sequence(body, fold)}){count}"
        case "ASSERT_NOT" | "ASSERT" | "AT":
            return ""
    raise ValueError(f"EBNF has no {op}; leave the grammar out of the comparison")


def _ranges(kind: str, value: Any) -> list[tuple[int, int]]:
    if kind == "LITERAL":
        return [(value, value)]
    if kind == "RANGE":
        return [value]
    known = {
        "CATEGORY_DIGIT": [(48, 57)],
        "CATEGORY_SPACE": [(9, 13), (32, 32)],
        "CATEGORY_NOT_SPACE": [(0, 8), (14, 31), (33, 0x10FFFF)],
        "CATEGORY_WORD": [(48, 57), (65, 90), (95, 95), (97, 122)],
    }
    return known[str(value)] if kind == "CATEGORY" else []


def _class(ranges: list[tuple[int, int]], negated: bool, fold: bool) -> str:
    if fold:
        letters = [(a, b) for a, b in ranges if b < 128 and chr(a).isalpha() and chr(b).isalpha()]
        ranges = ranges + [(a ^ 32, b ^ 32) for a, b in letters]
    shown = "".join(f"{_escape(a)}-{_escape(b)}" if a != b else _escape(a) for a, b in ranges)
    return f"[{'^' if negated else ''}{shown}]"


def _escape(point: int) -> str:
    if chr(point).isalnum() and point < 128:
        return chr(point)
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
