"""Families of hostile patterns, grammars and combinations, each at growing sizes, beside those of schemas.

Invariant: an input is built from its size alone, in time and text about linear in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .formulas import needs
from .grown import Family, grown_schemas, letter

SIZES = (4, 16, 64, 256, 1024, 4096)


def _bits(n: int) -> list[str]:
    return [f"(?=.{{{i}}}[ab])" for i in range(n)]


def _patterns() -> dict[str, Callable[[int], str]]:
    return {
        "stars in stars": lambda n: "(" * n + "a*" + "b)*" * n,
        "optional letters, then letters": lambda n: f"(a?){{{n}}}a{{{n}}}",
        "counts in counts": lambda n: f"((a{{1,{n}}}b?){{1,{n}}}c?){{1,{n}}}",
        "bounded counts after a star": lambda n: f".*a.{{{n}}}b.{{{n}}}c",
        "the letter n from the end": lambda n: f"(a|b)*a(a|b){{{n}}}",
        "alternatives with one start": lambda n: "|".join(
            "a" * i + "b" * (n - i) for i in range(min(n, 400))
        ),
        "alternatives of numbers": lambda n: "(" + "|".join(f"w{i}" for i in range(n)) + ")+",
        "alternatives of counted words": lambda n: "(" + "|".join(f"(ab{{{i}}}c)" for i in range(n)) + ")*",
        "lookaheads of letters": lambda n: "".join(f"(?=.*{letter(i)}{i})" for i in range(n)) + ".*",
        "negative lookaheads of letters": lambda n: "".join(f"(?!.*{letter(i)}{i})" for i in range(n)) + ".*",
        "lookaheads of counts": lambda n: "".join(f"(?=(a{{{i + 2}}})*$)" for i in range(n)) + "a*",
        "lookbehinds": lambda n: f"(.(?<!a.{{1}}b)){{{n}}}",
        "lookbehinds in a loop": lambda n: "(" + "".join(f"(?<!{letter(i)}{i})." for i in range(n)) + ")*",
        "word boundaries": lambda n: r"(\b\w+\b\W*)" + f"{{{n}}}",
        "anchors in the middle": lambda n: "(a$|^b|c)" * n,
        "classes": lambda n: "[" + "".join(f"\\u{0x4E00 + 2 * i:04x}" for i in range(n)) + "]*",
        "unicode classes": lambda n: "(" + r"[\w\s][^\W\d]\S" * n + ")*",
        "unicode classes counted": lambda n: rf"(\w{{1,{n}}}\s{{0,{n}}}\d?){{1,{n}}}",
        "case folded words": lambda n: "(?i)" + "".join(letter(i) for i in range(n)) + "ſßK",
        "groups": lambda n: "(?:" * n + "a" + ")?" * n,
        "groups side by side": lambda n: "(a|b?)" * n,
        "literals": lambda n: "abc" * n * 10,
        "dots and letters": lambda n: "".join(f".*{letter(i)}" for i in range(n)),
        "dots and letters, lazy, optional": lambda n: "".join(f"(.*?{letter(i)})?" for i in range(n)),
        "sets with gaps": lambda n: "".join(f"[^{letter(i)}]*{letter(i)}?" for i in range(n)),
        "huge bound": lambda n: f"(ab){{{n},{n * n * n}}}c*",
        "huge bound of huge bounds": lambda n: f"(((a|bc){{0,{n}}}d){{{n},{n * n}}}e?){{2,{n * n * n}}}",
        "equal halves by lookahead": lambda n: f"(?=a{{{n}}}b)(?=a{{{n - 1}}}[ab])a*b+",
        "empty alternatives": lambda n: "(" + "|" * n + "a)*",
        "numbers": lambda n: rf"^-?\d{{1,{n}}}(\.\d{{1,{n}}})?([eE][+-]?\d{{1,{n}}})?$",
        "every position apart": lambda n: "".join(_bits(n)) + f"[a-z]{{{n}}}",
        "an email at scale": lambda n: (
            rf"^([a-z0-9]+[._-]?){{1,{n}}}@([a-z0-9-]{{1,63}}\.){{1,{n}}}[a-z]{{2,{n}}}$"
        ),
    }


def _grammars() -> dict[str, tuple[str, Callable[[int], str]]]:
    def rules(n: int, body: Callable[[int], str], last: str = '"x"') -> str:
        return "\n".join(f"r{i}: {body(i)}" for i in range(n)) + f"\nr{n}: {last}\n"

    def gbnf(n: int, body: Callable[[int], str]) -> str:
        return "root ::= r0\n" + "\n".join(f"r{i} ::= {body(i)}" for i in range(n)) + f'\nr{n} ::= "x"\n'

    return {
        "left recursion": ("lark", lambda n: "start: r0\n" + rules(n, lambda i: f'r{i} "a" | r{i + 1}')),
        "left recursion through others": (
            "lark",
            lambda n: "start: r0\n" + rules(n, lambda i: f'r{(i * 7) % n} "a" | r{i + 1}'),
        ),
        "ambiguity": (
            "lark",
            lambda n: "start: r0\n" + rules(n, lambda i: f"r{i + 1} r{i + 1} | r{i + 1} | r{i} r{i}"),
        ),
        "hidden empties": (
            "lark",
            lambda n: "start: r0\n" + rules(n, lambda i: f'r{i + 1}? r{i + 1}? "a"? r0?', '"x"?'),
        ),
        "alternatives": ("lark", lambda n: "start: (" + "|".join(f'"w{i}"' for i in range(n)) + ")+\n"),
        "terminals that overlap": (
            "lark",
            lambda n: (
                "start: ("
                + "|".join(f"T{i}" for i in range(n))
                + ")+\n"
                + "\n".join(f"T{i}: /[a-z]{{1,{i + 1}}}{i}?/" for i in range(n))
                + "\n"
            ),
        ),
        "terminals of terminals": (
            "lark",
            lambda n: (
                "start: T0\n" + "\n".join(f"T{i}: T{i + 1} T{i + 1}" for i in range(n)) + f'\nT{n}: "a"\n'
            ),
        ),
        "rules of options": (
            "lark",
            lambda n: "start: r0\n" + rules(n, lambda i: f'[r{i + 1}] ("a"|"b")? [r{i + 1}]'),
        ),
        "brackets": ("lark", lambda n: "start: " + "(" * n + '"a"' + ")?" * n + "\n"),
        "counted": ("lark", lambda n: f'start: (("a" | b)~1..{n} c?)~1..{n}\nb: "b"\nc: "c"\n'),
        "ignored": (
            "lark",
            lambda n: 'start: ("a" | "b" start "c")~' + f"{n}\n%ignore /[ \\t]+/\n%ignore /#.*/\n",
        ),
        "every segmentation": (
            "lark",
            lambda n: "start: (" + "|".join(f"/a{{1,{i + 1}}}/" for i in range(n)) + ")+\n",
        ),
        "a chain of rules that nothing names": (
            "lark",
            lambda n: 'start: "x"\n' + rules(n, lambda i: f'r{i + 1} "a"'),
        ),
        "a chain of terminals": (
            "lark",
            lambda n: "start: T0\n" + "\n".join(f'T{i}: T{i + 1} "a"' for i in range(n)) + f'\nT{n}: "b"\n',
        ),
        "empty lines": ("lark", lambda n: 'start: "a"' + "\n" * (n * n // 16)),
        "mistakes": ("lark", lambda n: "start: a\n" + "\n".join(f"r{i}: ) (" for i in range(n))),
        "groups in a row": (
            "lark",
            lambda n: "start: " + " ".join(["(a|b)?"] * n) + '\na: "a"\nb: "b"\n',
        ),
        "templates": ("lark", lambda n: "start: " + "t{" * n + '"a"' + "}" * n + '\nt{x}: x | "(" x ")"\n'),
        "gbnf: repeats": ("gbnf", lambda n: f'root ::= (("a" | "b" "c"?){{1,{n}}} "d"?){{1,{n}}}'),
        "gbnf: optional rules": ("gbnf", lambda n: gbnf(n, lambda i: f"r{i + 1}? r{i + 1}? [a-z]?")),
        "gbnf: ambiguity": (
            "gbnf",
            lambda n: gbnf(n, lambda i: f"r{i + 1} r{i + 1} | r{i + 1} | r{i} r{i + 1}"),
        ),
        "gbnf: classes": (
            "gbnf",
            lambda n: "root ::= (" + " | ".join(f"[^{letter(i)}]*" for i in range(n)) + ")*",
        ),
        "gbnf: right recursion": ("gbnf", lambda n: gbnf(n, lambda i: f'"a" r{i} | "a" r{i + 1}')),
        "gbnf: palindromes": (
            "gbnf",
            lambda n: (
                "root ::= " + " | ".join(f'"{letter(i)}" root "{letter(i)}"' for i in range(n)) + " | [a-z]?"
            ),
        ),
        "gbnf: alternatives": (
            "gbnf",
            lambda n: "root ::= (" + " | ".join(f'"w{i}"' for i in range(n)) + ")*",
        ),
        "gbnf: a literal": ("gbnf", lambda n: f'root ::= "{"ab" * n * 8}"'),
    }


def _made_of_others() -> dict[str, Family]:
    import tokenform as tf

    def folded(n: int, step: Callable[[Any, int], Any]) -> Any:
        grammar = tf.regex("[a-z]+")
        for i in range(n):
            grammar = step(grammar, i)
        return grammar

    def tool(i: int) -> dict[str, Any]:
        schema = {**needs("a"), "properties": {"a": {"type": "integer"}, f"b{i}": {"type": "string"}}}
        return {"type": "function", "function": {"name": f"tool_{i}", "parameters": schema}}

    return {
        "alternatives in alternatives": lambda n: folded(n, lambda g, i: g | tf.regex(f"a{{{i}}}b")),
        "one after the other": lambda n: folded(n, lambda g, i: g + tf.regex("[a-z]*")),
        "cut by patterns": lambda n: folded(n, lambda g, i: g & tf.regex(f".*{letter(i)}.*")),
        "without words": lambda n: folded(n, lambda g, i: g & ~tf.regex(f".*{letter(i)}{letter(i * 3)}.*")),
        "schemas or schemas": lambda n: folded(n, lambda g, i: g | tf.json_schema({"const": i})),
        "schemas one after the other": lambda n: folded(
            n, lambda g, i: g + tf.json_schema({"type": "integer"})
        ),
        "until words": lambda n: tf.until("|".join(f"{letter(i)}{i}" for i in range(n))) + tf.regex("x"),
        "until a long word": lambda n: tf.until("ab" * n + "c"),
        "substring": lambda n: tf.substring(" ".join(f"w{i}" for i in range(n))),
        "choices": lambda n: tf.choice([f"{letter(i)}{i}" * (i % 5 + 1) for i in range(n * 4)]),
        "tools": lambda n: tf.tools([tool(i) for i in range(n)], format="hermes", tool_choice="required"),
        "tools, free text first": lambda n: tf.tools(
            [tool(i) for i in range(n)], format="hermes", tool_choice="auto"
        ),
        "lark with schemas": lambda n: tf.lark(
            "start: "
            + " ".join(f'"{letter(i)}" [r{i}]' for i in range(n))
            + "\n"
            + "\n".join(f'r{i}: %json {{"type": "array", "items": {{"const": {i}}}}}' for i in range(n))
            + "\n"
        ),
    }


def families() -> dict[str, Callable[[int], Callable[[], Any]]]:
    """Name -> what gives, for a size, what makes the grammar; it may raise any error of the library."""
    import tokenform as tf

    def schema(family: Family) -> Callable[[int], Callable[[], Any]]:
        return lambda n: lambda: tf.json_schema(family(n))

    def text(read: Callable[[str], Any], family: Callable[[int], str]) -> Callable[[int], Callable[[], Any]]:
        return lambda n: lambda: read(family(n))

    def made(family: Family) -> Callable[[int], Callable[[], Any]]:
        return lambda n: lambda: family(n)

    def spelled(pattern: str) -> Any:
        return tf.json_schema({"type": "string", "pattern": pattern})

    out = {f"schemas: {name}": schema(family) for name, family in grown_schemas().items()}
    for name, pattern in _patterns().items():
        out[f"regex: {name}"] = text(tf.regex, pattern)
        out[f"pattern: {name}"] = text(spelled, pattern)
    for name, (reader, grammar) in _grammars().items():
        out[f"{reader}: {name}"] = text(getattr(tf, reader), grammar)
    for name, family in _made_of_others().items():
        out[f"made of others: {name}"] = made(family)
    return out
