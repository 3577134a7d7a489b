"""The token automaton of a small context-free grammar, byte by byte: a slow, plain test double of the
engine's.

Grammars are the EBNF of the task files: rules `name ::= a | b`, quoted literals, rule names, `[...]`
classes, and the suffixes `?`, `*`, `+` on these and on groups.  States are interned Earley sets (Earley
1970), so masks are kept.
"""

from __future__ import annotations

import itertools
import re

import numpy as np

TOKEN = re.compile(r'\s*("(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|[A-Za-z_][\w-]*|::=|[|()?*+])')


def read_rules(text):
    """name -> list of alternatives, each a tuple of symbols: str (rule) or frozenset of bytes."""
    rules: dict[str, list[tuple]] = {}
    fresh = itertools.count()

    def parse(tokens, name):
        alternatives, current = [], []
        while tokens and tokens[0] != ")":
            token = tokens.pop(0)
            if token == "|":
                alternatives.append(tuple(current))
                current = []
                continue
            part = atom(token, tokens)
            if tokens and tokens[0] in "?*+":
                part = repeat(part, tokens.pop(0))
            current += part
        rules[name] = [*alternatives, tuple(current)]

    def atom(token, tokens):
        if token == "(":
            name = f"_{next(fresh)}"
            parse(tokens, name)
            tokens.pop(0)
            return [name]
        if token[0] == '"':
            return [frozenset([b]) for b in token[1:-1].encode().decode("unicode_escape").encode("latin-1")]
        if token[0] == "[":
            return [frozenset(b for b in range(32, 127) if re.match(token, chr(b)))]
        return [token]

    def repeat(part, suffix):
        name = f"_{next(fresh)}"
        again = (*part, name)
        rules[name] = (
            [(), tuple(part)] if suffix == "?" else [(), again] if suffix == "*" else [tuple(part), again]
        )
        return [name]

    for line in re.split(r"\n(?=[\w-]+\s*::=)", text.strip()):
        name, body = line.split("::=", 1)
        parse(TOKEN.findall(body), name.strip())
    return rules


class GrammarAutomaton:
    """The automaton's methods over interned Earley sets."""

    class _Vocabulary:
        def __init__(self, tokens, eos):
            self.tokens, self.eos, self.size = list(tokens), list(eos), len(tokens)

    def __init__(self, text, tokens, eos, root="root"):
        self.rules, self.root = read_rules(text), root
        self.vocabulary = self._Vocabulary(tokens, eos)
        self._sets: list[tuple] = []
        self._numbers: dict[tuple, int] = {}
        self._edges: dict[tuple[int, int], int | None] = {}
        self._masks: dict[int, np.ndarray] = {}
        self._nullable = self._find_nullable()
        self._history: list[list] = []
        self.start = self._intern(
            ((), frozenset(self._close({(self.root, a, 0, 0) for a in range(len(self.rules[root]))}, [])))
        )

    def _find_nullable(self):
        nullable: set[str] = set()
        while True:
            more = {
                n
                for n, alts in self.rules.items()
                if any(all(isinstance(s, str) and s in nullable for s in a) for a in alts)
            }
            if more == nullable:
                return nullable
            nullable = more

    def _close(self, items, columns):
        """Earley's predictor and completer; items are (rule, alternative, dot, origin)."""
        at = len(columns)
        queue = list(items)
        items = set(items)
        for item in queue:
            rule, alternative, dot, origin = item
            body = self.rules[rule][alternative]
            fresh = []
            if dot == len(body):
                source = items if origin == at else columns[origin]
                fresh = [
                    (r, a, d + 1, o)
                    for r, a, d, o in list(source)
                    if d < len(self.rules[r][a]) and self.rules[r][a][d] == rule
                ]
            elif isinstance(body[dot], str):
                fresh = [(body[dot], a, 0, at) for a in range(len(self.rules[body[dot]]))]
                if body[dot] in self._nullable:
                    fresh.append((rule, alternative, dot + 1, origin))
            for new in fresh:
                if new not in items:
                    items.add(new)
                    queue.append(new)
        return items

    def _intern(self, state):
        """A state is (columns that are still referred to, current column), with origins renumbered."""
        columns, current = state
        needed: set[int] = set()
        frontier = {o for _, _, _, o in current if o < len(columns)}
        while frontier:
            needed |= frontier
            frontier = {o for c in frontier for _, _, _, o in columns[c] if o < c} - needed
        order = sorted(needed)
        number = {old: new for new, old in enumerate(order)} | {len(columns): len(order)}
        kept = tuple(
            frozenset((r, a, d, number[o]) for r, a, d, o in columns[c] if o in number) for c in order
        )
        key = (kept, frozenset((r, a, d, number[o]) for r, a, d, o in current))
        if key not in self._numbers:
            self._numbers[key] = len(self._sets)
            self._sets.append(key)
        return self._numbers[key]

    def _step(self, state, byte):
        if (state, byte) not in self._edges:
            columns, current = self._sets[state]
            moved = set()
            for r, a, d, o in current:
                symbol = self.rules[r][a][d] if d < len(self.rules[r][a]) else ()
                if not isinstance(symbol, str) and byte in symbol:
                    moved.add((r, a, d + 1, o))
            columns = [*columns, current]
            self._edges[state, byte] = (
                self._intern((tuple(columns), frozenset(self._close(moved, columns)))) if moved else None
            )
        return self._edges[state, byte]

    def _walk(self, state, data):
        for byte in data:
            if state is None:
                return None
            state = self._step(state, byte)
        return state

    def advance(self, state, token):
        if token in self.vocabulary.eos:
            return -1
        return self._walk(state, self.vocabulary.tokens[token])

    def allows(self, state, token):
        if token in self.vocabulary.eos:
            return self.is_accepting(state)
        return (
            len(self.vocabulary.tokens[token]) > 0
            and self._walk(state, self.vocabulary.tokens[token]) is not None
        )

    def allowed_tokens(self, state):
        if state not in self._masks:
            self._masks[state] = np.array(
                [t for t in range(self.vocabulary.size) if self.allows(state, t)], dtype=np.int32
            )
        return self._masks[state]

    def is_accepting(self, state):
        return any(
            r == self.root and d == len(self.rules[r][a]) and o == 0 for r, a, d, o in self._sets[state][1]
        )

    def distance(self, state, within=None):
        return 0 if self.is_accepting(state) else 1
