"""`until` and special tokens: a trigger that is one is taken as that token, just where the text may end."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf

TRIGGERS = ("</think>", "[END]", "ab")
TOKENS = [bytes([b]) for b in range(256)] + [b"</think>", b"[END]", b"<other>", b"ab", b"thi", b""]
END, OTHER, EOS = {"</think>": 256, "[END]": 257}, 258, 261
VOCABULARY = tf.Vocabulary(TOKENS, eos=[EOS], special=[256, 257, OTHER, EOS])
GRAMMARS = {
    None: tf.until(["</think>", "[END]", "ab"]),
    "json": tf.until(["</think>", "[END]", "ab"], then=tf.json_schema({"type": "integer"})),
    "text": tf.until(["</think>"], then=tf.combinators.any_text()),
    "twice": tf.until("</think>") + tf.until("[END]"),
}


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from([*b"<ab>[/x", 256, 257, OTHER, 259, 260]), max_size=8),
    st.sampled_from([*GRAMMARS]),
)
def test_the_token_is_allowed_exactly_where_the_text_may_end(tokens, kind):
    automaton = GRAMMARS[kind].compile(VOCABULARY)
    # the judge: how many texts have ended so far, told from the tokens
    stages = {
        None: [TRIGGERS],
        "json": [TRIGGERS],
        "text": [("</think>",)],
        "twice": [("</think>",), ("[END]",)],
    }
    wanted, stage, text, state = stages[kind], 0, b"", automaton.start
    for token in tokens:
        open_ = stage < len(wanted)
        for name, special in END.items():
            assert automaton.allows(state, special) == (open_ and name in wanted[stage])
        assert not automaton.allows(state, OTHER)
        if not automaton.allows(state, token):
            break
        state = automaton.advance(state, token)
        if open_:
            text += TOKENS[token]
            ended = token in END.values() or any(text.endswith(one.encode()) for one in wanted[stage])
            stage, text = stage + ended, b"" if ended else text


def test_both_ways_read_alike():
    grammar = tf.until("</think>", then=tf.json_schema({"type": "integer"}))
    automaton = grammar.compile(VOCABULARY)
    for way in ([*b"Hm.", 256, *b"42"], [*b"Hm.</think>42"]):
        state = automaton.start
        for token in way:
            state = automaton.advance(state, token)
        assert automaton.is_accepting(state)
        assert grammar.parse(b"".join(TOKENS[token] for token in way).decode()) == 42
    without = tf.Vocabulary([*TOKENS[:256], b""], eos=[256], special=[256])
    automaton = grammar.compile(without)
    assert automaton.matches(b"Hm.</think>42") and not automaton.matches(b"Hm.42")


def test_it_goes_on_with_what_regular_languages_do():
    both = tf.until("ab") & tf.regex("x*ab")
    assert both.compile(VOCABULARY).matches(b"xxab")
    assert (~tf.until("ab")).compile(VOCABULARY).matches(b"xx")
    again = tf.Grammar.from_bytes(tf.until("</think>").to_bytes()).compile(VOCABULARY)
    assert again.allows(again.start, 256)
    either = (tf.until("</think>") | tf.choice(["x"])).compile(VOCABULARY)
    assert either.allows(either.start, 256)
