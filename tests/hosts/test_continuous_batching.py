"""A grammar for each request of transformers' continuous batching, with the built-in model."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

import tokenform as tf
from tokenform.builtin.loading import load
from tokenform.errors import BudgetTooSmall, InvalidSchema, OptionError

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "multipleOf": 7},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 1},
        "note": {"type": "string"},
    },
    "required": ["n", "tags", "note"],
    "additionalProperties": False,
}


@pytest.fixture
def model(needs):
    import copy

    needs("transformers.generation.continuous_batching.cb_logits_processors")
    model, tokenizer = load()
    return copy.deepcopy(model), tokenizer  # the manager changes its attention


def config(**options):
    from transformers import ContinuousBatchingConfig

    chosen = {"use_async_batching": False, "use_cuda_graph": False, "num_blocks": 64, "block_size": 32}
    return ContinuousBatchingConfig(**(chosen | options))


def managed(model, tokenizer, **sampling):
    from transformers import GenerationConfig

    from tokenform.integrations.continuous_batching import Batching

    chosen = GenerationConfig(
        max_new_tokens=60, eos_token_id=tokenizer.eos_token_id, pad_token_id=0, **sampling
    )
    manager = model.init_continuous_batching(chosen, continuous_batching_config=config())
    return manager, Batching(manager, tokenizer)


@pytest.mark.filterwarnings("ignore")
def test_each_request_keeps_to_its_own_grammar(model):
    model, tokenizer = model
    sampling = {"do_sample": True, "temperature": 2.0, "top_k": 5, "top_p": 0.9}
    manager, batching = managed(model, tokenizer, **sampling)
    ids = tokenizer("The order has the number A-2041.").input_ids
    grammars = {"json": tf.json_schema(SCHEMA), "code": tf.regex(r"[A-Z]-\d{4,12}"), "free": None}
    manager.start()
    try:
        names = {
            batching.add_request(ids, grammar=grammar, max_new_tokens=budget): (kind, budget)
            for kind, grammar in grammars.items()
            for budget in (30, 45)
        }
        with pytest.raises(BudgetTooSmall, match="max_tokens=4"):
            batching.add_request(ids, grammar=grammars["json"], max_new_tokens=4)
        with pytest.raises(InvalidSchema):
            batching.add_request(ids, grammar={"type": "strin"})
        results = {}
        while len(results) < len(names):
            one = manager.get_result(timeout=120)
            assert one is not None, "nothing for two minutes"
            results[one.request_id] = one
    finally:
        manager.stop(block=True)
    for name, (kind, budget) in names.items():
        tokens = results[name].generated_tokens
        assert len(tokens) <= budget and results[name].error is None
        if kind == "free":
            continue
        assert tokens[-1] == tokenizer.eos_token_id
        text = tokenizer.decode(tokens[:-1])
        if kind == "json":
            jsonschema.validate(json.loads(text), SCHEMA)
        else:
            assert re.fullmatch(r"[A-Z]-\d{4,12}", text)


@pytest.mark.filterwarnings("ignore")
def test_batches_prepared_ahead_are_refused(model):
    from tokenform.integrations.continuous_batching import Batching

    model, tokenizer = model
    manager = model.init_continuous_batching(continuous_batching_config=config(use_async_batching=True))
    with pytest.raises(OptionError, match="use_async_batching=False"):
        Batching(manager, tokenizer)
