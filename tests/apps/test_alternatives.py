"""What a field could have been: probabilities of whole values, against an enumeration of all token paths."""

from __future__ import annotations

import gc
import json
import math
import pickle
from typing import Any

import pytest

import tokenform as tf
from tokenform import errors

TINY = {"strings": "canonical", "whitespace": "compact"}


def object_of(schema: Any) -> dict[str, Any]:
    properties = {"kind": schema, "n": {"type": "integer"}}
    return {"type": "object", "properties": properties, "required": ["kind", "n"]}


def enumerated(generator: tf.Generator, prompt: str, result: Any, pointer: str, values: list[Any]) -> Any:
    """Each value's share of the mass of all token paths that the constraint allows and that write it."""
    field, automaton = result.field(pointer), result.automaton
    texts = [json.dumps(value, ensure_ascii=False).encode() for value in values]
    tokens, model = generator.vocabulary.tokens, generator.language_model()
    written = tuple(result.tokens[: field.tokens.start])
    begun = len(b"".join(tokens[one] for one in written))
    wanted = [result.text.encode()[begun : len(result.text[: field.start].encode())] + one for one in texts]
    state = automaton.start
    for token in written:
        state = automaton.advance(state, token)
    begin = tuple(generator.prompt_ids(prompt)) + written
    mass = [0.0] * len(values)

    def complete(number: int, text: bytes) -> bool:
        behind = text[len(wanted[number]) :][:1]
        ends = bool(behind) and not behind.isdigit() if texts[number][-1:].isdigit() else True
        return text.startswith(wanted[number]) and ends

    def walk(path: tuple[int, ...], text: bytes, state: Any, logprob: float) -> None:
        (distribution,) = model.logprobs([begin + path])
        for token, part in enumerate(tokens):
            after = text + part
            if not part or not any(one.startswith(after) or after.startswith(one) for one in wanted):
                continue
            if not automaton.allows(state, token):
                continue
            whole = [i for i in range(len(wanted)) if complete(i, after)]
            if whole:
                mass[whole[0]] += math.exp(logprob + distribution[token])
            else:
                walk(
                    (*path, token),
                    after,
                    automaton.advance(state, token),
                    logprob + float(distribution[token]),
                )

    walk((), b"", state, 0.0)
    return [one / sum(mass) for one in mass]


@pytest.mark.parametrize(
    "values",
    [
        ["cat", "car", "catch", "dog"],  # they share their first tokens
        ["Ada", "Ad", "A"],
        [1, 12, 2, 120],
        [True, False, None],
        ["Grüße", "Grün"],
        ['say "a"', "say"],
    ],
    ids=str,
)
def test_probabilities_are_those_of_all_token_paths(small: tf.Generator, values: list[Any]) -> None:
    grammar = tf.json_schema(object_of({"enum": values}), **TINY)
    result = small.sample("x", grammar, seed=0, sampler=tf.Local())[0]
    before = small.language_model().forwards
    found = result.field("/kind").alternatives()
    assert {json.dumps(one.value) for one in found} == {json.dumps(one) for one in values}
    shares = [one.probability for one in found]
    assert math.isclose(sum(shares), 1.0) and shares == sorted(shares, reverse=True)
    want = enumerated(small, "x", result, "/kind", values)
    got = {json.dumps(one.value): one.probability for one in found}
    assert [got[json.dumps(value)] for value in values] == pytest.approx(want, rel=1e-6)
    assert before == 0


def test_one_forward_pass(small: tf.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    open_one = small.language_model
    monkeypatch.setattr(small, "language_model", lambda: made.append(open_one()) or made[-1])
    result = small.sample("x", tf.json_schema(object_of({"enum": ["red", "rust", "blue"]})), seed=0)[0]
    assert len(result.field("/kind").alternatives()) == 3
    assert [one.forwards for one in made] == [1]


def test_escapes_that_are_not_needed_do_not_count_as_values(small: tf.Generator) -> None:
    plain = tf.json_schema({"enum": ["cat", "dog"]}, **TINY)
    loose = tf.json_schema({"enum": ["cat", "dog"]}, whitespace="any", strings="any")
    results = [small.sample("x", grammar, seed=0)[0] for grammar in (plain, loose)]
    one, other = (result.origin.alternatives(result.automaton, (), b"") for result in results)
    assert dict(one) == pytest.approx(dict(other))


def test_long_values_count_with_the_spelling_of_the_tokenizer(small: tf.Generator) -> None:
    names = [f"{word} wrote about engines, Ada wrote about engines" for word in ("Ada", "kind", "items")]
    result = small.sample("x", tf.json_schema(object_of({"enum": names}), **TINY), seed=0)[0]
    found = result.field("/kind").alternatives()
    assert sorted(one.value for one in found) == sorted(names)
    assert math.isclose(sum(one.probability for one in found), 1.0)


def test_the_whole_document_and_a_list_item(small: tf.Generator) -> None:
    top = small.sample("x", tf.json_schema({"enum": ["a", "b", 3]}, **TINY), seed=0)[0]
    assert {one.value for one in top.field("").alternatives()} == {"a", "b", 3}
    schema = {"type": "array", "items": {"enum": [1, 2]}, "minItems": 2, "maxItems": 2}
    item = small.sample("x", tf.json_schema(schema, **TINY), seed=0)[0]
    assert {one.value for one in item.field("/1").alternatives()} == {1, 2}


@pytest.mark.parametrize("choices", [["cat", "dog", "a dog"], ["12", "1", "x"], [" a", "a\\/"]])
def test_choices_have_the_probabilities_of_their_texts(small: tf.Generator, choices: list[str]) -> None:
    result = small.generate("x", choices=choices, seed=0)
    field = result.field("")
    assert field.value == field.text == result.text and math.isclose(field.logprob, result.logprob)
    found = {one.value: one.probability for one in field.alternatives()}
    # the same of strings of their own, by the model: every way to cut a text, and its end
    automaton, tokens = result.automaton, small.vocabulary.tokens
    begin, model = tuple(small.prompt_ids("x", tf.choice(choices))), small.language_model()
    mass = dict.fromkeys(choices, 0.0)
    todo = [((), 0.0, automaton.start)]
    while todo:
        path, reached, state = todo.pop()
        (row,) = model.logprobs([begin + path])
        for token in automaton.allowed_tokens(state).tolist():
            if token in small.vocabulary.eos:
                mass[b"".join(tokens[one] for one in path).decode()] += math.exp(reached + row[token])
            else:
                after = automaton.advance(state, token)
                todo.append(((*path, token), reached + float(row[token]), after))
    assert found == pytest.approx({text: one / sum(mass.values()) for text, one in mass.items()})
    assert set(result.probabilities) == set(choices)


def test_a_result_knows_how_many_tokens_the_model_read(small: tf.Generator) -> None:
    for sampler in (None, tf.CARS()):
        result = small.generate("xyz", choices=["a", "b"], seed=0, sampler=sampler)
        assert result.prompt_tokens == len(small.show("xyz", tf.choice(["a", "b"])).ids) > 0


def test_what_is_refused_says_why(small: tf.Generator) -> None:
    result = small.sample("x", object_of({"type": "string", "maxLength": 5}), seed=0)[0]
    with pytest.raises(errors.OptionError, match="enums and the like"):
        result.field("/kind").alternatives()
    with pytest.raises(errors.OptionError, match="Local"):
        pickle.loads(pickle.dumps(result.origin)) or result.__class__(result.text, [], None, 0.0).field(
            "/n"
        ).alternatives()
    own = tf.Generator(small.model, small.tokenizer, drafter=None)
    result = own.sample("x", object_of({"enum": ["a", "b"]}), seed=0)[0]
    del own
    gc.collect()
    with pytest.raises(errors.ModelError, match="gone"):
        result.field("/kind").alternatives()
