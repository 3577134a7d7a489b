# ruff: noqa: E501
"""`tf.python`: what it accepts compiles, and a reader of its syntax tree finds each name, attribute and argument."""

from __future__ import annotations

import ast
import builtins
import datetime
import inspect
import json
import math
import os
import pickle
import random
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform.decoding.instructions import instruction
from tokenform.errors import LimitExceeded, OptionError
from tokenform.frontends.expressions import BUILTINS

from .walks import BYTES, written


def price(item: str, quantity: int = 1, /, *, tax: float = 0.2) -> float:
    return len(item) * quantity * tax


def total(*prices: float, start: float, unit: str = "") -> float:
    return sum(prices, start)


SCOPE: dict[str, Any] = {
    "math": math, "os": os, "json": json, "datetime": datetime, "prices": [3.5, 2, 8], "table": {"a": 1, "b": 2},
    "text": "one two", "price": price, "total": total, "n": 3, "nothing": None, "Fraction": __import__("fractions").Fraction,
}  # fmt: skip
RIGHT = """
n
n + 1
-n * 2
math.pi
math.sqrt(n)
math.floor(math.sqrt(n)) % 2
sum(prices) / len(prices)
round(sum(prices), 2)
round(number=n, ndigits=1)
prices[0]
prices[-1]
prices[1:]
prices[:2] + [n]
table['a']
table.get('c', 0)
text.upper()
text.split(sep=' ', maxsplit=1)
text.split()[0]
[x * 2 for x in prices]
[x for x in prices if x > n]
[i for i in range(n)]
sum(x for x in prices if x > 2)
any(x > 3 for x in prices)
sorted(prices, key=lambda x: -x, reverse=True)
max(prices) if prices else 0
max(n, 2, 3)
list(map(str, prices))
list(map(lambda x: x + 1, prices))
list(zip(prices, prices, strict=True))
price('lamp')
price('lamp', 2, tax=0.1)
total(1, 2, start=0)
total(start=n, unit='m')
os.path.join('a', 'b')
json.dumps(table, indent=2)
datetime.date(2020, 1, 2)
datetime.datetime.fromisoformat('2020-01-02')
nothing is None
n is not None and n > 2
not prices or n in prices
n not in prices
2 * math.pi * n
100.0 * len(prices) / n
{'a': n, 'b': [1, 2]}
(n, 1)
(n,)
(n + 1) * 2
Fraction(1, n)
isinstance(n, int)
["double", 3]
[]
"""
WRONG = [
    ("m", "ax2(n)", "an invented function"),
    ("prices", "2", "an invented name"),
    ("math.s", "quareroot(n)", "an invented attribute"),
    ("math", " + 1", "a module alone"),
    ("os.path.jo", "ined", "an invented attribute of a module inside"),
    ("text.upper()", ".lower()", "an attribute of a result"),
    ("price('lamp', ", "discount=3)", "an argument that there is not"),
    ("price(", "item='lamp')", "a positional one by name"),
    ("price('lamp', 2, ", "3)", "too many arguments"),
    ("price(", "tax=1)", "a required one left out"),
    ("total(1", ")", "the same of a keyword"),
    ("total(start=1, ", "start=2)", "one twice"),
    ("total(start=1, ", "2)", "a positional one behind a keyword"),
    ("len(", ")", "too few"),
    ("", "x", "a variable that nothing binds"),
    ("[x for x in prices] + [", "x]", "the same behind its comprehension"),
    ("[x for x in ", "x]", "the same before it"),
    ("[1", " is None]", "a literal that is compared by is"),
    ("", "3 + n", "a literal in front"),
    ("", "eval('1')", "a builtin that is not given"),
    ("", "__import__('os')", "what begins with _"),
    ("math.", "__dict__", "what begins with _"),
    ("n", "(1)", "a number that is called"),
    ("n ", "** n", "a power"),
    ("(((", "(n))))", "brackets four deep"),
]


@pytest.fixture(scope="module")
def automaton() -> tf.TokenAutomaton:
    return tf.python(SCOPE).compile(BYTES)


@pytest.mark.parametrize("text", RIGHT.strip().splitlines())
def test_right_expressions_are_accepted_and_run(text: str, automaton: tf.TokenAutomaton) -> None:
    eval(text, dict(SCOPE))
    judge(text, SCOPE, BUILTINS)
    assert automaton.check(text) is None


@pytest.mark.parametrize(("right", "wrong", "why"), WRONG)
def test_wrong_ones_end_where_they_go_wrong(
    right: str, wrong: str, why: str, automaton: tf.TokenAutomaton
) -> None:
    state = automaton.step_bytes(automaton.start, right.encode())
    assert automaton.distance(state) is not None
    found = automaton.check(right + wrong)
    assert found is not None and len(right) <= found[0] < len(right + wrong) + (not wrong), (why, found)


class Judge(ast.NodeVisitor):
    """Names are bound, attributes are there, calls bind."""

    def __init__(self, scope: dict[str, Any], builtins: Any) -> None:
        self.scope, self.builtins, self.bound = scope, builtins, list[str]()

    def found(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute):
            return getattr(self.found(node.value), node.attr)
        assert isinstance(node, ast.Name), ast.unparse(node)
        return self.scope[node.id] if node.id in self.scope else getattr(builtins, node.id)

    def visit_Name(self, node: ast.Name) -> None:
        assert node.id in self.bound or node.id in self.scope or node.id in self.builtins, node.id

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.found(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        called = self.found(node.func)
        if isinstance(node.func, ast.Name) and node.func.id in BUILTINS and node.func.id not in self.scope:
            signature = inspect.signature(eval(f"lambda {BUILTINS[node.func.id]}: 0"))
        else:
            try:
                signature = inspect.signature(called)
            except ValueError:
                assert not node.keywords
                return
        signature.bind(*node.args, **{str(one.arg): one.value for one in node.keywords})

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.bound += [one.arg for one in node.args.args]
        self.visit(node.body)
        self.bound.pop()

    def visit_ListComp(self, node: Any) -> None:
        (loop,) = node.generators
        self.visit(loop.iter)
        self.bound.append(loop.target.id)
        for inner in (node.elt, *loop.ifs):
            self.visit(inner)
        self.bound.pop()

    visit_GeneratorExp = visit_ListComp


def judge(text: str, scope: dict[str, Any], builtins: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = ast.parse(text, mode="eval")
        compile(tree, "text", "eval")
    Judge(scope, builtins).visit(tree)


@pytest.mark.parametrize(
    "text", ["y", "math.x", "price()", "[x for x in x]", "x", "1 is None", "len(1, 2)", "print(1)"]
)
def test_the_judge_sees_faults(text: str) -> None:
    with pytest.raises((AssertionError, AttributeError, TypeError, SyntaxError)):
        judge(text, SCOPE, BUILTINS)


NAMES = st.sampled_from(
    ["a", "b", "is_", "no", "note", "i", "x", "lam", "For", "max", "é", "s1", "none", "inn", "key"]
)


@st.composite
def functions(draw: Any) -> Any:
    names = draw(st.lists(NAMES, max_size=5, unique=True))
    cut = sorted(draw(st.lists(st.integers(0, len(names)), min_size=3, max_size=3)))
    before, plain, after = names[: cut[0]], names[cut[0] : cut[1]], names[cut[1] :]
    optional = draw(st.integers(0, len(before + plain)))
    shown = [f"{name}=0" if at >= optional else name for at, name in enumerate(before + plain)]
    parts = shown[: len(before)] + ["/"] * bool(before) + shown[len(before) :]
    if after:
        parts.append(draw(st.sampled_from(["*", "*rest"])))
        parts += [f"{name}=0" if draw(st.booleans()) else name for name in after]
    if draw(st.booleans()):
        parts.append("**more")
    return eval(f"lambda {', '.join(parts)}: 0")


@st.composite
def scopes(draw: Any) -> dict[str, Any]:
    values = st.one_of(functions(), st.sampled_from([math, "text", [1], 3, dict, datetime.date, None, price]))
    return draw(st.dictionaries(NAMES, values, max_size=4))


@settings(max_examples=60, deadline=None)
@given(scopes(), st.lists(st.sampled_from(sorted(BUILTINS)), max_size=4), st.integers(0, 1 << 30))
def test_what_is_accepted_compiles_and_binds(scope: dict[str, Any], builtins: list[str], seed: int) -> None:
    automaton, rng = tf.python(scope, builtins=builtins).compile(BYTES), random.Random(seed)
    for _ in range(12):
        judge(written(automaton, rng, rng.choice([5, 20, 60])), scope, builtins)


@pytest.mark.slow
def test_thousands_compile_and_bind() -> None:
    settings(max_examples=1000, deadline=None)(test_what_is_accepted_compiles_and_binds.hypothesis.inner_test)  # type: ignore[attr-defined]


@settings(max_examples=60, deadline=None)
@given(functions(), st.integers(0, 3), st.lists(NAMES, max_size=3, unique=True))
def test_calls_that_bind_are_accepted(function: Any, positional: int, keywords: list[str]) -> None:
    """Where the keywords stand in the order of the signature, as they are written."""
    signature = inspect.signature(function)
    named = [name for name in signature.parameters if name in keywords]
    text = f"f({', '.join(['1'] * positional + [f'{name}=2' for name in named])})"
    try:
        signature.bind(*[1] * positional, **dict.fromkeys(named, 2))
        binds = all(
            signature.parameters[name].kind is not inspect.Parameter.POSITIONAL_ONLY for name in named
        )
    except TypeError:
        binds = False
    assert tf.python({"f": function}).compile(BYTES).matches(text) == binds, text


def test_names_alone_and_no_builtins() -> None:
    accepts = tf.python(["rate", "load"], builtins=False).compile(BYTES).matches
    assert accepts("load(rate, 3) * 2") and not accepts("len(rate)") and not accepts("rate.x")
    assert not accepts("load(rate=3)")
    assert tf.python(builtins=False).compile(BYTES).matches("[1 + 2]")
    some = tf.python(["x"], builtins=["len"]).compile(BYTES).matches
    assert some("len(x)") and not some("max(x)") and not some("[x for x in x]") and some("[i for i in x]")


def test_nothing_is_run() -> None:
    class Trap:
        @property
        def value(self) -> int:
            raise AssertionError

        def method(self, a: int) -> int:
            raise AssertionError

    accepts = tf.python({"trap": Trap()}).compile(BYTES).matches
    assert accepts("trap.value + trap.method(a=1)") and not accepts("trap.method()")


@pytest.mark.parametrize(
    ("scope", "options", "error", "said"),
    [
        ("math", {}, OptionError, "a mapping"),
        (3, {}, OptionError, "a mapping"),
        (["a b"], {}, OptionError, "no name"),
        (["class"], {}, OptionError, "no name"),
        (["ﬁ"], {}, OptionError, "no name"),
        ([], {"builtins": ["eval"]}, OptionError, "'eval'"),
        ([], {"depth": -1}, OptionError, "least is 0"),
        ([], {"variables": ["1"]}, OptionError, "no name"),
    ],
)
def test_mistakes_are_told(scope: Any, options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        tf.python(scope, **options)


def test_a_scope_that_is_too_large_is_refused() -> None:
    source = "lambda {}: 0"
    many = {f"f{i}": eval(source.format(", ".join(f"p{i}_{k}=0" for k in range(20)))) for i in range(1500)}
    with pytest.raises(LimitExceeded):
        tf.python(many)


def test_it_composes_and_is_told() -> None:
    grammar = tf.python({"price": price, "math": math})
    assert instruction(grammar, "auto") == (
        "Answer with one Python expression that uses only price(item: str, quantity: int = 1, /, *, tax: float = 0.2) -> float, math."
    )
    assert pickle.loads(pickle.dumps(grammar)).compile(BYTES).matches("math.pi")
    document = tf.json_schema({"type": "array", "items": {"type": "string"}}, strings_in={"/items": grammar})
    assert document.compile(BYTES).matches('["math.pi", "price(\'a\')"]')
