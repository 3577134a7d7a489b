"""The rules of `tf.sql`.

Names are read before the FROM clause that gives them a meaning, so that a query is an alternative for each
scope: rules of expressions over the columns of that scope, whose alternatives the parser drops as the text
decides.
Invariant: terminals that can come at one place have no text in common, and none is a beginning of another's
from which that other can't be reached; so the longest match is the only one.
Complexity: about 100 expansions a scope.  A new token costs what the scopes cost that the text has not ruled
out yet.
Rejected: whitespace that is ignored (`FROMcity` would be read); precedence of operators (what is accepted
does not depend on it).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import product

from tokenform.frontends.catalog.dialects import Dialect
from tokenform.frontends.catalog.scopes import Scope
from tokenform.frontends.catalog.tables import Catalog, ForeignKey
from tokenform.frontends.grammar_structure import GrammarStructure
from tokenform.frontends.rule_table import RuleTable, one_of

_S = " "
_B = r"(?: |\n {0,8})"
"""Before clauses, conditions and branches a line may break."""
_IN = r"(?: |\n {1,8})"
"""A line that breaks behind SELECT or a comma is indented."""
_SHARED = {
    "number": r"-?(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,6})?",
    ",": f",{_IN}?",
    "factor": r"[1-9][0-9]{0,3}(?:\.[0-9]{1,2})? ?\* ?",
    "(": r"\(",
    ")": r"\)",
    "*": r"\*",
    "rows": r"[*1]",
    ";": ";",
    "compared": f"{_S}?(?:=|<>|!=|<=?|>=?){_S}?",
}
Call = tuple[str, str | None, str | None]
"""(terminal, arguments of the function, arguments of the aggregate)"""


def _words(*words: str) -> str:
    """Words in capitals or lower case, blanks as whitespace."""
    spelled = (form for word in words for form in dict.fromkeys((word.upper(), word.lower())))
    return "(?:" + "|".join(form.replace(" ", _S) for form in spelled) + ")"


class QueryRules(RuleTable):
    """Writes the rules; symbols of a scope end with its number. Values of kind P have no aggregates, those of
    kind A may; at level 0 there are no calls in P, and at level 1 calls of level 0."""

    def __init__(self, dialect: Dialect, catalog: Catalog, aliases: tuple[str, ...]) -> None:
        self._dialect = dialect
        self._catalog = catalog
        self._aliases = aliases
        super().__init__()
        self.terminals |= _SHARED

    def written(self, scopes: Sequence[Scope]) -> GrammarStructure:
        """The grammar of the queries over these scopes."""
        self._keywords()
        calls = self._calls()
        columns = [self._columns(scope) for scope in scopes]
        own = self._classes("columns", columns)
        stars = [[f"{q}.*" for forms in self._qualifiers(scope) for q in forms] for scope in scopes]
        whole = self._classes("columns of a table", stars)
        for at, scope in enumerate(scopes):
            self._expressions(at, own[at], calls)
            self._from(at, scope)
            self._query(at, whole[at], [name for name in self._aliases if name not in columns[at]])
        self._top()
        return super().structure("start")

    def _keywords(self) -> None:
        form, negated = self._dialect, f"(?:{_words('not')}{_S})?"
        spaced = {
            name: f"{' ' if name in ('as', 'then') else _B}{_words(name)}{_S}"
            for name in (
                "from",
                "where",
                "group by",
                "having",
                "order by",
                "and",
                "or",
                "when",
                "then",
                "else",
                "as",
            )
        }
        taken = sorted({*form.reserved, *(name.lower() for name in self._aliases)})
        alias = "|".join("".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in name) for name in taken)
        self.terminals |= spaced | {
            "select": _words("select") + _IN,
            "distinct": _words("distinct") + _S,
            "not": _words("not") + _S,
            "join": f"{_B}(?:(?:{_words('inner', 'left', 'left outer')}){_S})?{_words('join')}{_S}",
            "set": f"{_B}{_words('union', 'union all', 'intersect', 'except')}{_B}",
            "limit": f"{_B}{_words('limit')}{_S}[1-9][0-9]{{0,5}}(?:{_S}{_words('offset')}{_S}[0-9]{{1,6}})?",
            "direction": f"{_S}{_words('asc', 'desc')}",
            "order by 1": f"{_B}{_words('order by')}{_S}1(?:{_S}{_words('asc', 'desc')})?",
            "case": _words("case when") + _S,
            "end": f"{_B}{_words('end')}",
            "null": _words("null"),
            "is null": f"{_S}{_words('is null', 'is not null')}",
            "between": f"{_S}{negated}{_words('between')}{_S}",
            "matching": f"{_S}{negated}{_words(*form.matching)}{_S}",
            "in": f"{_S}{negated}{_words('in')}{_S}?\\(",
            "cast": _words("cast") + r"\(",
            "as a type": f"{_S}{_words('as')}{_S}{_words(*form.types)}\\)",
            "calculated": f"(?:{_S}[+-]{_S}|{_S}?(?:[*/%]|\\|\\|){_S}?)",
            "string": r"'(?:[^'\x00-\x1f\x7f]|''){0,100}'",
            "word": _words(*form.words),
            "name": f"(?!(?:{alias})(?![A-Za-z0-9_]))[A-Za-z_][A-Za-z0-9_]{{0,40}}",
        }
        self.rule("literal", ["number"], ["string"], ["word"])
        self.rule("literals", ["literal"], ["literals", ",", "literal"])
        self.rule("joint", ["and"], ["or"])
        self.rule("opened", ["("], ["not", "("])
        self.rule("selected", ["select"], ["select", "distinct"])

    def _calls(self) -> list[Call]:
        """The functions, those together that take the same."""
        form = self._dialect
        alike: dict[tuple[str | None, str | None, bool], list[str]] = defaultdict(list)
        for name in sorted({*form.functions, *form.aggregates}):
            alike[form.functions.get(name), form.aggregates.get(name), name == "count"].append(name)
        return [
            (self.terminal(f"functions {', '.join(names)}", f"{_words(*names)}\\("), plain, aggregate)
            for (plain, aggregate, _), names in alike.items()
        ]

    def _qualifiers(self, scope: Scope) -> list[list[str]]:
        return [[one] for one in scope.aliases] or [self._dialect.spelled(table) for table in scope.tables]

    def _columns(self, scope: Scope) -> list[str]:
        """All ways in which a column of the scope is named."""
        listed = [list(self._catalog.tables[table]) for table in scope.tables]
        times = Counter(self._dialect.folded(column) for columns in listed for column in columns)
        texts = []
        for qualifiers, columns in zip(self._qualifiers(scope), listed, strict=True):
            for column in columns:
                spelled = self._dialect.spelled(column)
                texts += [f"{one}.{two}" for one, two in product(qualifiers, spelled)]
                texts += spelled if times[self._dialect.folded(column)] == 1 else []
        return texts

    def _classes(self, label: str, texts: Sequence[Sequence[str]]) -> list[list[str]]:
        """The terminals of each scope's texts: one for the texts that stand in the same scopes."""
        places: dict[str, list[int]] = defaultdict(list)
        for at, listed in enumerate(texts):
            for text in listed:
                places[text].append(at)
        alike: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for text, scopes in places.items():
            alike[tuple(scopes)].append(text)
        found: list[list[str]] = [[] for _ in texts]
        for number, (members, same) in enumerate(alike.items()):
            name = self.terminal(f"{label} {number}", one_of(same))
            for at in members:
                found[at].append(name)
        return found

    def _expressions(self, at: int, columns: Iterable[str], calls: Iterable[Call]) -> None:
        """Values and conditions over the columns of a scope, each level around those of the one before."""
        self.rule(f"head P0 {at}", *([column] for column in columns))
        cases, value, choice = f"cases {at}", f"value P0 {at}", f"choice {at}"
        given = [f"tests P0 {at}", "then", value]
        self.rule(cases, ["case", *given], [cases, "when", *given])
        self.rule(choice, [cases, "end"], [cases, "else", value, "end"], [cases, "else", "null", "end"])
        self._calls_of(f"P0 {at}", calls)
        self.rule(f"head P1 {at}", [f"head P0 {at}"], [f"call P0 {at}"], [choice])
        self.rule(f"head P1 {at}", ["cast", f"call P0 {at}", "as a type"])
        self._aggregates(at, calls)
        self.rule(f"head A0 {at}", [f"head P0 {at}"], [f"call P0 {at}"], [f"aggregate {at}"])
        self._calls_of(f"A0 {at}", calls)
        self.rule(f"head A1 {at}", [f"head P0 {at}"], [f"call A0 {at}"], [f"aggregate {at}"], [choice])
        for kind in ("P0", "A0", "P1", "A1"):
            self._values(f"{kind} {at}")
            if kind != "A0":
                self._tests(f"{kind} {at}")
        test, tests, condition, named = (
            f"{name} {at}" for name in ("test P2", "tests P2", "condition", "named P1")
        )
        self.rule(
            test, [f"test P1 {at}"], [named, "compared", "(", "subquery", ")"], [named, "in", "subquery", ")"]
        )
        self.rule(tests, [test], [tests, "joint", test])
        inside = ["opened", tests, ")"]
        self.rule(condition, [test], inside, [condition, "joint", test], [condition, "joint", *inside])

    def _values(self, s: str) -> None:
        """value, named: one that begins with no literal, part: an operand; head: one that is no literal."""
        self.rule(f"value {s}", [f"part {s}"], [f"value {s}", "calculated", f"part {s}"])
        self.rule(f"named {s}", [f"head {s}"], [f"named {s}", "calculated", f"part {s}"])
        self.rule(f"part {s}", [f"head {s}"], ["literal"])

    def _calls_of(self, s: str, calls: Iterable[Call]) -> None:
        """What has values of a level between its parentheses."""
        call, value, several = f"call {s}", f"value {s}", f"values {s}"
        self.rule(call, ["(", f"named {s}", ")"], ["(", "literal", "calculated", f"named {s}", ")"])
        self.rule(call, ["cast", value, "as a type"])
        self.rule(several, [f"named {s}", ",", value], [several, ",", value])
        self.rule(several, ["string", ",", value])
        for name, function, _ in calls:
            self.rule(call, *([name, *given, ")"] for given in _arguments(function, s, several)))

    def _aggregates(self, at: int, calls: Iterable[Call]) -> None:
        aggregate = f"aggregate {at}"
        for name, _, count in calls:
            self.rule(aggregate, *([name, *given, ")"] for given in _arguments(count, f"P1 {at}", "")))
            if count and count.startswith("1"):
                self.rule(aggregate, [name, "distinct", f"named P1 {at}", ")"])
            if "count" in name.split():
                self.rule(aggregate, [name, "rows", ")"])

    def _tests(self, s: str) -> None:
        """Conditions without parentheses around them."""
        test, tests, value, named = f"test {s}", f"tests {s}", f"value {s}", f"named {s}"
        self.rule(test, [named, "compared", value], [named, "is null"], [named, "matching", "string"])
        self.rule(test, [named, "between", value, "and", value], [named, "in", "literals", ")"])
        self.rule(tests, [test], [tests, "joint", test])

    def _from(self, at: int, scope: Scope) -> None:
        qualifiers = self._qualifiers(scope)
        for places, steps in scope.orders:
            expansion: list[str] = []
            for number, place in enumerate(places):
                table = scope.tables[place]
                expansion += ["join"] if number else []
                expansion.append(self.terminal(f"table {table}", one_of(self._dialect.spelled(table))))
                if scope.aliases:
                    name = scope.aliases[place]
                    expansion.append(self.terminal(f"alias {name}", f"{_S}(?:{_words('as')}{_S})?{name}"))
                if number:
                    before = [scope.tables[one] for one in places[:number]]
                    ways = [self._equal(way, qualifiers) for way in steps[number - 1]]
                    ways += self._using(table, before, [key for key, *_ in steps[number - 1]])
                    expansion.append(self.terminal(f"keys {'|'.join(ways)}", "|".join(ways)))
            self.rule(f"tables {at}", expansion)

    def _equal(self, way: tuple[ForeignKey, int, int], qualifiers: Sequence[Sequence[str]]) -> str:
        """ON and the columns of a key, either side of each first."""
        key, one, two = way
        pairs = []
        for column, other in zip(key.columns, key.to_columns, strict=True):
            sides = [
                one_of(f"{q}.{name}" for q, name in product(qualifiers[at], self._dialect.spelled(given)))
                for at, given in ((one, column), (two, other))
            ]
            equal = f"{_S}?={_S}?"
            pairs.append(f"(?:{sides[0]}{equal}{sides[1]}|{sides[1]}{equal}{sides[0]})")
        return f"{_B}{_words('on')}{_S}" + f"{_B}{_words('and')}{_S}".join(pairs)

    def _using(self, table: str, before: Sequence[str], keys: Iterable[ForeignKey]) -> list[str]:
        """USING and a column, which the new table has and one of those before."""
        found = []
        for key in keys:
            (column, *more), name = key.columns, self._dialect.folded(key.columns[0])
            listed = [
                {self._dialect.folded(one) for one in self._catalog.tables[other]}
                for other in (table, *before)
            ]
            once = [name in columns for columns in listed].count(True) == 2
            if not more and once and name == self._dialect.folded(key.to_columns[0]):
                found.append(f"{_B}{_words('using')}{_S}?\\({one_of(self._dialect.spelled(column))}\\)")
        return list(dict.fromkeys(found))

    def _query(self, at: int, stars: Iterable[str], aliases: Iterable[str]) -> None:
        """Queries, and those with one result that others ask."""
        result, single, several, groups, asked = (
            f"{name} {at}" for name in ("result", "single", "several", "groups", "asked")
        )
        start, grouped, plain, after = f"from {at}", f"grouped {at}", f"ordered P1 {at}", f"ordered A1 {at}"
        self.rule(groups, [f"named P1 {at}"], [groups, ",", f"named P1 {at}"])
        self.rule(grouped, ["group by", groups], ["group by", groups, "having", f"tests A1 {at}"])
        self.rule(asked, [f"named A1 {at}"], ["factor", f"named A1 {at}"])
        subquery = ["(", "subquery", ")"]
        self.rule(result, [asked], subquery, [asked, "calculated", *subquery])
        self.rule(single, [result], [result, "as", "name"])
        self.rule(single, *([result, "as", self.terminal(f"named {x}", x)] for x in self._aliases))
        wholes = [["*"], *([one] for one in stars)]
        self.rule(several, [single], *wholes, *([several, ",", one] for one, *_ in ([single], *wholes[1:])))
        self._ordered(f"P1 {at}")
        self._ordered(f"A1 {at}")
        for query, results, started, where in (
            ("query", several, start, f"condition {at}"),
            ("single query", asked, f"from inside {at}", f"tests P1 {at}"),
        ):
            first = ["selected", results]
            self.rule(started, ["from", f"tables {at}"], ["from", f"tables {at}", "where", where])
            self.rule(query, [*first, started], [*first, started, plain])
            self.rule(query, [*first, started, grouped], [*first, started, grouped, after])
        self.rule("part", ["selected", single, start], ["selected", single, start, grouped])
        for x in aliases:
            named = f"several {at} {x}"
            self.rule(named, [result, "as", f"named {x}"], [several, ",", result, "as", f"named {x}"])
            self.rule(named, [named, ",", single])
            self.rule("query", ["selected", named, start, f"by {x}"])
            self.rule("query", ["selected", named, start, grouped, f"by {x}"])

    def _ordered(self, s: str) -> None:
        ordered, term, terms = f"ordered {s}", f"term {s}", f"terms {s}"
        self.rule(term, [f"named {s}"], [f"named {s}", "direction"])
        self.rule(terms, [term], [terms, ",", term])
        self.rule(ordered, ["order by", terms])

    def _top(self) -> None:
        self.rule("parts", ["part", "set", "part"])
        self.rule("subquery", ["single query"], ["single query", "limit"])
        for x in self._aliases:
            self.rule(f"by {x}", ["order by", f"named {x}"], ["order by", f"named {x}", "direction"])
        whole = [["query"], ["parts"], ["parts", "order by 1"]]
        self.rule("whole", *whole, *([*one, "limit"] for one in whole))
        self.rule("start", ["whole"], ["whole", ";"])


def _arguments(count: str | None, s: str, several: str) -> list[list[str]]:
    """What may stand between the parentheses, by a number of arguments as "2", "1-2" or "2-", and with "'"
    where the first may be a string."""
    if count is None:
        return []
    least, _, most = count.removesuffix("'").partition("-")
    first = [f"named {s}"]
    if count.removesuffix("'").endswith("-"):
        lists = [first, [several]] if least == "1" else [[several]]  # `several`: two or more
    else:
        numbers = range(int(least), int(most or least) + 1)
        lists = [[*first, *[",", f"value {s}"] * (number - 1)] if number else [] for number in numbers]
    return lists + [["string", *given[1:]] for given in lists if count.endswith("'") and given[:1] == first]
