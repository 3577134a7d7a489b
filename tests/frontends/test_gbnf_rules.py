"""Which rules derive a text of given symbols: the quick way beside the definition, read again and again."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tokenform.frontends.gbnf_rules import Rules, deriving

RULES = st.dictionaries(
    st.sampled_from("stuv"), st.lists(st.lists(st.sampled_from("stuvab"), max_size=3).map(tuple), max_size=4)
)


def by_definition(rules: Rules, given: str) -> set[str]:
    found: set[str] = set()
    for _ in rules:
        found |= {name for name, ways in rules.items() if any(set(way) <= found | set(given) for way in ways)}
    return found


@given(RULES, st.sampled_from(["", "a", "ab"]))
@example({"s": [("t", "u")], "t": [(), ()], "u": [("u",)]}, "")
@example({"s": [("t", "u")], "t": [(), ("b",)], "u": [("s",)]}, "b")
def test_rules_that_derive_a_text(rules: Rules, given: str) -> None:
    assert deriving(rules, lambda symbol: symbol in given) == by_definition(rules, given)
