"""The rules of `tf.python`.

Invariant: terminals that can come at one place have no text in common, and none is a beginning of another's
from which that other can't be reached.  Level 0 has no brackets, each level those of the one before.
Complexity: for each level and variable about 40 rules, and four a parameter of each shape of signature.
Rejected: keywords in any order (their subsets are too many); brackets without a bound (a small model goes on
opening them, and Python reads two hundred).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tokenform.frontends.grammar_structure import GrammarStructure
from tokenform.frontends.rule_table import RuleTable, one_of

Called = tuple[tuple[str, str, bool], ...]
"""Of each parameter the name, the kind as `inspect` names it, and whether it has to be given."""
LEVELS = 3
_TERMINALS = {
    "number": r"(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,6})?",
    "factor": r"[1-9][0-9]{0,3}(?:\.[0-9]{1,2})? \* ",
    "string": r"(?:'[^'\\\x00-\x1f\x7f]{0,100}'|\"[^\"\\\x00-\x1f\x7f]{0,100}\")",
    "word": "True|False|None",
    "-": "-",
    "calculated": r" (?:[+*%-]|//?) ",
    "compared": " (?:==|!=|<=?|>=?|in|not in) ",
    "is none": " is (?:not )?None",
    "not": "not ",
    "joint": " (?:and|or) ",
    "if": " if ",
    "else": " else ",
    "(": r"\(",
    ")": r"\)",
    "[": r"\[",
    "]": r"\]",
    "{": r"\{",
    "}": r"\}",
    ", ": ", ",
    ": ": ": ",
    ":": ":",
    ",)": r",\)",
}


class ExpressionRules(RuleTable):
    """Symbols end with a level, and with the variable that may stand there."""

    def __init__(
        self, values: Sequence[str], calls: Mapping[Called, Sequence[str]], variables: Sequence[str]
    ) -> None:
        super().__init__()
        self.terminals |= _TERMINALS
        self._values = values
        self._calls = calls
        self._variables = variables

    def written(self) -> GrammarStructure:
        """The grammar."""
        self.rule("literal", ["number"], ["-", "number"], ["string"], ["word"])
        for name in self._variables:
            self.terminal(f"variable {name}", name)
            self.terminal(f"for {name}", f" for {name} in ")
            self.terminal(f"lambda {name}", f"lambda {name}: ")
            for level in (0, 1):
                self._level(level, name)
        for level in range(LEVELS + 1):
            self._level(level, "")
        return self.structure("start")

    def _level(self, level: int, variable: str) -> None:
        s = f"{level} {variable}"
        head, part, some, test, tests, value = (
            f"{name} {s}" for name in ("head", "part", "sum", "test", "tests", "value")
        )
        if self._values:
            self.rule(head, [self.terminal("name", one_of(self._values))])
        if variable:
            self.rule(head, [f"variable {variable}"])
        self.rule(part, ["literal"], [head], ["-", head], [f"bracket {s}"])
        if level:
            self._brackets(s, f"{level - 1} {variable}", "" if variable else str(min(level - 1, 1)))
        self.rule(some, [part], [some, "calculated", part])
        self.rule(test, [some], [some, "compared", some], [head, "is none"], ["not", some])
        self.rule(tests, [test], [tests, "joint", test])
        self.rule(value, [tests], [tests, "if", tests, "else", value])
        if s == f"{LEVELS} ":
            self._start(s)

    def _start(self, s: str) -> None:
        """A whole expression: it begins with no literal but a factor, where a small model goes on and on."""
        some, test, tests, value, part = (
            f"{name} first" for name in ("sum", "test", "tests", "value", "part")
        )
        begun = [[f"head {s}"], ["-", f"head {s}"], [f"bracket {s}"], ["factor", f"head {s}"]]
        self.rule(part, *begun)
        self.rule(some, [part], [some, "calculated", f"part {s}"])
        self.rule(test, [some], [some, "compared", f"sum {s}"], [f"head {s}", "is none"], ["not", f"sum {s}"])
        self.rule(tests, [test], [tests, "joint", f"test {s}"])
        self.rule(value, [tests], [tests, "if", f"tests {s}", "else", f"value {s}"])
        self.rule("start", [value])

    def _brackets(self, s: str, inner: str, bound: str) -> None:
        """What stands around values of the level inside; `bound`: that of values with a variable."""
        value, items, pairs, index = (f"{name} {inner}" for name in ("value", "items", "pairs", "index"))
        head, part = f"head {s}", f"bracket {s}"
        self.rule(items, [value], [items, ", ", value])
        self.rule(pairs, [value, ": ", value], [pairs, ", ", value, ": ", value])
        self.rule(part, ["(", value, ")"], ["(", value, ",)"], ["(", value, ", ", items, ")"])
        self.rule(part, ["[", "]"], ["[", items, "]"], ["{", "}"], ["{", pairs, "}"])
        self.rule(index, [value], [value, ":", value], [value, ":"], [":", value], [":"])
        self.rule(head, [head, "[", index, "]"])
        argument, drawn = f"argument {s}", f"drawn {s}"
        self.rule(argument, [value])
        for name in self._variables if bound else ():
            body = f"{bound} {name}"
            self.rule(argument, [f"lambda {name}", f"value {body}"])
            self.rule(drawn, [f"value {body}", f"for {name}", f"sum {inner}"])
            self.rule(drawn, [f"value {body}", f"for {name}", f"sum {inner}", "if", f"tests {body}"])
        self.rule(part, ["[", drawn, "]"])
        for number, (shape, names) in enumerate(self._calls.items()):
            name = self.terminal(f"call of {', '.join(names[:3])}", f"{one_of(names)}\\(")
            self.rule(head, [name, self._arguments(f"{number} {s}", shape, argument, drawn)])

    def _arguments(self, s: str, shape: Called, value: str, drawn: str) -> str:
        """A rule for arguments that bind to a signature, with the bracket behind them: positional ones, and
        the keywords of parameters that are left, in their order."""
        ordered = [one for one in shape if one[1] != "VAR_POSITIONAL"]
        positional = [one for one in ordered if one[1] != "KEYWORD_ONLY"]
        several = len(ordered) < len(shape)
        for when, comma in (("first", []), ("more", [", "])):
            for at, (name, kind, required) in enumerate(ordered):
                keywords = f"{when} keyword {s} {at}"
                if kind != "POSITIONAL_ONLY":
                    given = self.terminal(f"{name}=", f"{name}=")
                    self.rule(keywords, [*comma, given, value, f"more keyword {s} {at + 1}"])
                if not required:
                    self.rule(keywords, [f"{when} keyword {s} {at + 1}"])
            self.rule(f"{when} keyword {s} {len(ordered)}", [")"])
            for at in range(len(positional) + 1):
                rule = f"{when} positional {s} {at}"
                self.rule(rule, [f"{when} keyword {s} {at}"])
                if at < len(positional):
                    self.rule(rule, [*comma, value, f"more positional {s} {at + 1}"])
                elif several:
                    self.rule(rule, [*comma, value, f"more positional {s} {at}"])
        others = ordered[1:] if positional else ordered
        if (several or positional) and not any(required for _, _, required in others):
            self.rule(f"first positional {s} 0", [drawn, ")"])
        return f"first positional {s} 0"
