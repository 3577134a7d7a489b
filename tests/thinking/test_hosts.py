"""Thoughts that a host's prompt has left open: the constraint begins after them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from scripted import Scripted, tokenizer

import tokenform as tf
from tokenform.errors import BudgetTooSmall, OptionError
from tokenform.integrations.grammar_compiler import GrammarCompiler
from tokenform.integrations.transformers import GrammarLogitsProcessor

SCHEMA = {
    "properties": {"answer": {"type": "integer"}},
    "required": ["answer"],
    "additionalProperties": False,
}
SAID = '{"answer": 4}'
ASKED = [{"role": "user", "content": "2+2"}]
MARKS = [True, False, None]  # special tokens, added ones, text


def rendered(known: Any, **options: Any) -> list[int]:
    return list(known.apply_chat_template(ASKED, add_generation_prompt=True, return_dict=False, **options))


def taken(automaton: Any, ids: list[int]) -> bool:
    state = automaton.start
    for token in ids:
        if not automaton.allows(state, token):
            return False
        state = automaton.advance(state, token)
    return bool(automaton.is_accepting(state))


@pytest.mark.parametrize("special", MARKS)
@pytest.mark.parametrize("template", ["own", "open", "always", "asked", "none"])
def test_a_server_s_constraint_begins_after_the_thought_of_its_prompt(template: str, special: Any) -> None:
    known = tokenizer(template, special=special)
    asked = GrammarCompiler(known, size=len(known))
    prompt, thought = rendered(known), "I add.\n</think>\n\n"
    opened = template in ("open", "always")
    for kind, text, said in (("json", json.dumps(SCHEMA), SAID), ("regex", "[0-9]", "4")):
        automaton = asked.automaton(kind, text, prompt=prompt)
        ids = [known.encode(one, add_special_tokens=False) for one in (said, thought + said)]
        assert [taken(automaton, one) for one in ids] == [not opened, opened]
        assert taken(asked.automaton(kind, text), ids[0])  # the host tells thoughts apart
    if template == "open":
        closed = rendered(known, enable_thinking=False)
        assert taken(asked.automaton("json", json.dumps(SCHEMA), prompt=closed), known.encode(SAID))
    assert asked.automaton("json", "{}", prompt=prompt) is asked.automaton("json", "{}", prompt=prompt)


@pytest.mark.parametrize("special", MARKS)
def test_transformers_own_loop(special: Any) -> None:
    torch.set_num_threads(1)
    known = tokenizer("open", special=special)
    model = Scripted(known, [f"<think>\nI add.\n</think>\n\n{SAID}"])

    def written(processor: Any, prompt: list[int], most: int = 60) -> str:
        ids = list(prompt)
        for _ in range(most):
            scores = model(torch.tensor([ids])).logits[:, -1].float()
            ids.append(int(processor(torch.tensor([ids]), scores).argmax()))
            if ids[-1] == known.eos_token_id:
                break
        return str(known.decode(ids[len(prompt) :])).replace("<|im_end|>", "")

    processor = GrammarLogitsProcessor(tf.json_schema(SCHEMA), known, model=model, max_tokens=60)
    prompt = rendered(known)
    for _ in range(2):
        thought, _, said = written(processor, prompt).partition("</think>")
        assert json.loads(said) == {"answer": 4} and thought.strip() == "I add."
    model.turns = [f"<think>\n\n</think>\n\n{SAID}"]
    assert json.loads(written(processor, rendered(known, enable_thinking=False))) == {"answer": 4}


def test_prompts_of_one_grammar_are_alike_and_the_thought_needs_room() -> None:
    known = tokenizer("open")
    opened, closed = rendered(known), rendered(known, enable_thinking=False)
    size = min(len(opened), len(closed))
    rows = torch.tensor([opened[-size:], closed[-size:]])
    scores = torch.zeros(2, len(known))
    one = tf.json_schema(SCHEMA)
    with pytest.raises(OptionError, match="one grammar for each prompt"):
        GrammarLogitsProcessor(one, known, model=Scripted(known, []))(rows, scores.clone())
    kept = GrammarLogitsProcessor([one, one], known, model=Scripted(known, []))(rows, scores.clone())
    assert torch.isfinite(kept[0]).sum() > torch.isfinite(kept[1]).sum()
    shortest = one.compile(tf.Vocabulary.from_tokenizer(known))
    least = shortest.distance(shortest.start)
    narrow = GrammarLogitsProcessor(one, known, model=Scripted(known, []), max_tokens=least)
    with pytest.raises(BudgetTooSmall):
        narrow(rows[:1], scores[:1].clone())
