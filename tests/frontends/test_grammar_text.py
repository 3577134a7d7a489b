"""A text with the name of its kind is one grammar, wherever it comes from."""

import pytest

import tokenform as tf
from tokenform import errors
from tokenform.batch.rows import own_grammar
from tokenform.cli.constraints import constraint
from tokenform.frontends.grammar_text import grammar_of_text

GBNF, LARK = 'root ::= "a" root | "b"', 'start: "a" start | "b"'


@pytest.mark.parametrize("text", [GBNF, LARK])
def test_a_grammar_is_told_by_its_rules_in_rows_files_and_requests(text, tmp_path):
    (tmp_path / "own.txt").write_text(text)
    made = [
        grammar_of_text("grammar", text),
        own_grammar("grammar", text, ()),
        constraint(None, None, None, str(tmp_path / "own.txt")),
    ]
    vocabulary = tf.Vocabulary([b"a", b"b", b""], [2], [2])
    for grammar in made:
        automaton = grammar.compile(vocabulary)
        state = automaton.advance(automaton.advance(automaton.start, 0), 1)
        assert automaton.is_accepting(state) and not automaton.is_accepting(automaton.start)


def test_kinds_are_read_by_their_own_readers():
    assert grammar_of_text("lark", LARK).form == tf.lark(LARK).form
    assert grammar_of_text("gbnf", GBNF).form == tf.gbnf(GBNF).form
    assert grammar_of_text("json", '{"type": "integer"}').form == tf.json_schema({"type": "integer"}).form
    assert grammar_of_text("choice", '["a"]').form == tf.choice(["a"]).form
    with pytest.raises(errors.OptionError, match="no constraint of kind 'jsn'"):
        grammar_of_text("jsn", "{}")
    with pytest.raises(errors.InvalidGrammar):
        grammar_of_text("lark", GBNF)
