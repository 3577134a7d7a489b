"""The backend behind SGLang's own registry, grammar manager, wrapper for thoughts and walk of draft trees."""

from __future__ import annotations

import json
from types import SimpleNamespace

import jsonschema
import numpy as np
import pytest
import torch
from benchmarks.suites.hosts.texts import random_model

SIZE = 2080
SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 0, "maximum": 99, "multipleOf": 7},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 1, "uniqueItems": True},
    },
    "required": ["n", "tags"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def sglang(needs):
    needs("sglang.srt.constrained.base_grammar_backend")
    needs("sglang.srt.speculative.spec_utils")
    from tokenform.integrations.sglang.plugin import register

    assert register() and register()
    return needs("sglang")


@pytest.fixture
def serving(sglang, monkeypatch):
    """A server's options."""
    from sglang.srt import runtime_context

    options = SimpleNamespace(
        constrained_json_whitespace_pattern=None,
        constrained_json_disable_any_whitespace=False,
        reasoning_parser=None,
        enable_strict_thinking=False,
    )
    monkeypatch.setattr(runtime_context, "get_serving", lambda: options)
    return options


@pytest.fixture
def made(serving, model_folder):
    """A backend, as the registry makes it, and its tokenizer."""

    def make(folder=model_folder):
        from sglang.srt.constrained.base_grammar_backend import GRAMMAR_BACKEND_REGISTRY
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(folder)
        ends = {tokenizer.eos_token_id}
        return GRAMMAR_BACKEND_REGISTRY["tokenform"](None, tokenizer, SIZE, ends), tokenizer

    return make


def compiled(backend, kind, text, reasoning=False):
    """As the grammar manager asks: in the pool the first time, a copy after that."""
    found, met = backend.get_cached_or_future_value((kind, text), reasoning)
    if not met:
        found = found.result()
        backend.set_cache((kind, text), found.copy())
    return found


def test_the_name_is_among_the_choices_of_the_command(sglang):
    from sglang.srt.arg_groups import choices

    assert choices.GRAMMAR_BACKEND_CHOICES.count("tokenform") == 1


def write(backend, tokenizer, grammars, budgets, seed):
    """A batch, row by row, as the scheduler samples it."""
    draw = random_model(SIZE, seed)
    outputs = [[] for _ in grammars]
    rows = grammars[0].allocate_vocab_mask(SIZE, len(grammars), "cpu")
    while running := [at for at, grammar in enumerate(grammars) if not grammar.finished]:
        grammars[0].reset_vocab_mask(rows)
        for at in running:
            grammars[at].fill_vocab_mask(rows, at)
        logits = torch.zeros(len(grammars), SIZE)
        grammars[0].apply_vocab_mask(logits, rows)
        for at in running:
            allowed = np.packbits(np.isfinite(logits[at].numpy()), bitorder="little").view(np.uint32)
            outputs[at].append(draw(allowed, 0))
            grammars[at].accept_token(outputs[at][-1])
            grammars[at].finished = grammars[at].is_terminated() or len(outputs[at]) >= budgets[at]
    return [tokenizer.decode([one for one in output if one != tokenizer.eos_token_id]) for output in outputs]


class Request(SimpleNamespace):
    """As much of SGLang's `Req` as hooks read; unlike its base it can be referred to weakly."""


def request(grammar, budget):
    asked = Request(
        grammar=grammar,
        sampling_params=SimpleNamespace(max_new_tokens=budget),
        origin_input_ids=[1],
        output_ids=[],
        message=None,
        finished=lambda: False,
    )
    asked.set_finish_with_abort = lambda message: setattr(asked, "message", message)
    return asked


def test_batches_are_valid_and_within_max_new_tokens(made):
    from tokenform.integrations.sglang.plugin import _met, _ready

    backend, tokenizer = made()
    kinds = [
        ("json", json.dumps(SCHEMA)),
        ("regex", "[a-f]{3,9}"),
        ("ebnf", 'root ::= "(" root ")" | [0-9]+'),
    ]
    requests = [request(compiled(backend, *kind), budget) for kind in kinds * 4 for budget in (20, 40)]
    _ready(requests[:8], None)
    for one in requests[8:]:
        _met(False, None, one)
    assert not any(one.message for one in requests)
    budgets = [one.sampling_params.max_new_tokens for one in requests]
    texts = write(backend, tokenizer, [one.grammar for one in requests], budgets, 1)
    assert all(one.grammar.is_terminated() for one in requests)
    for one, text in zip(requests, texts, strict=True):
        if one.grammar.grammar_stats.dispatch_type == "json":
            jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
        elif one.grammar.grammar_stats.dispatch_type == "grammar":
            assert text.strip("()").isdigit() and text.count("(") == text.count(")")


def test_a_batchs_rows_are_those_of_each_text(made):
    from sglang.srt.constrained.base_grammar_backend import GrammarRow

    backend, _ = made()
    grammars = [compiled(backend, "json", json.dumps(SCHEMA)) for _ in range(4)]
    draw = random_model(SIZE, 5)
    for fails in (False, True):
        if fails:
            grammars[2].text.give_up("a fault")
        entries = [GrammarRow(row=2 * at + 1, grammar=one) for at, one in enumerate(grammars)]
        for _ in range(5):
            rows, single = (torch.full((9, SIZE // 32), 7, dtype=torch.int32) for _ in range(2))
            grammars[0].fill_vocab_mask_batched(entries, rows)
            for entry in entries:
                entry.grammar.fill_vocab_mask(single, entry.row)
            assert torch.equal(rows, single) and (rows[::2] == 7).all()
            assert (rows[5] == -1).all() == fails
            for entry in entries:
                if not entry.grammar.text.failed:
                    entry.grammar.accept_token(draw(rows[entry.row].numpy().view(np.uint32), 0))
    assert grammars[2].try_jump_forward(None) is None


def test_grammars_that_were_not_asked_for_lately_are_let_go(made, serving, monkeypatch, thinking_folder):
    from tokenform.integrations.sglang import backend as module

    monkeypatch.setattr(module, "KEPT", 3)
    for parser, folder in ((None, {}), ("deepseek-r1", {"folder": thinking_folder})):
        serving.reasoning_parser = parser
        backend, _ = made(**folder)
        for number in (1, 2, 3, 1, 4, 5):
            compiled(backend, "regex", f"[a-f]{{{number}}}")
        assert [key[1] for key in backend.cache] == ["[a-f]{1}", "[a-f]{4}", "[a-f]{5}"]


def test_too_few_tokens_end_the_request_with_a_message(made):
    from tokenform.integrations.sglang.plugin import _met

    backend, _ = made()
    asked = request(compiled(backend, "json", json.dumps(SCHEMA)), 3)
    _met(False, None, asked)
    assert "BudgetTooSmall" in asked.message and "max_tokens=3" in asked.message


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("json", '{"properties": {"a": {"type": "strin"}}}', "/properties/a"),
        ("json", "{", "InvalidSchema"),
        ("regex", "(a", "InvalidRegex"),
        ("ebnf", "root ::= missing", "missing"),
    ],
)
def test_what_is_wrong_is_an_invalid_grammar(made, kind, text, message):
    backend, _ = made()
    found = compiled(backend, kind, text)
    assert type(found).__name__ == "InvalidGrammarObject" and message in found.error_message
    again = compiled(backend, kind, text)
    assert type(again).__name__ == "InvalidGrammarObject"


def test_a_tree_of_drafts_is_walked_and_taken_back(made):
    from sglang.srt.speculative.spec_utils import traverse_tree

    backend, _ = made()
    text = json.dumps(SCHEMA)
    grammar, other = compiled(backend, "json", text), compiled(backend, "json", text)
    draw = random_model(SIZE, 2)
    rows = grammar.allocate_vocab_mask(SIZE, 1, "cpu")
    for _ in range(3):
        grammar.fill_vocab_mask(rows, 0)
        token = draw(rows[0].numpy().view(np.uint32), 0)
        grammar.accept_token(token)
        other.accept_token(token)
    other.fill_vocab_mask(rows, 0)
    root = rows[0].clone()
    bits = np.flatnonzero(np.unpackbits(root.numpy().view(np.uint8), bitorder="little"))
    good, better, bad = int(bits[0]), int(bits[-1]), next(i for i in range(SIZE) if i not in set(bits))
    # 0 -> {1: good -> 3: bad, 2: better}, and 4: bad beside them
    drafts = torch.tensor([0, good, better, bad, bad])
    child = torch.tensor([1, 3, -1, -1, -1])
    sibling = torch.tensor([-1, 2, 4, -1, -1])
    masks = grammar.allocate_vocab_mask(SIZE, 5, "cpu")
    traverse_tree(child, sibling, drafts, grammar, masks, vocab_size=SIZE)
    assert torch.equal(masks[0], root)
    for at, token in ((1, good), (2, better)):
        other.accept_token(token)
        other.fill_vocab_mask(rows, 0)
        assert torch.equal(masks[at], rows[0])
        other.rollback(1)
    grammar.fill_vocab_mask(rows, 0)
    assert torch.equal(rows[0], root)
    with pytest.raises(ValueError, match="not allowed"):
        grammar.accept_token(bad)


def test_a_thought_comes_first_and_counts(made, serving, thinking_folder):
    from tokenform.integrations.sglang.backend import limit

    serving.reasoning_parser = "deepseek-r1"
    backend, tokenizer = made(thinking_folder)
    assert type(backend).__name__ == "ReasonerGrammarBackend"
    inner = backend.get_cached_or_future_value(("json", json.dumps(SCHEMA)), True)[0].result()
    asked = request(inner, 40)
    limit(asked)
    close = tokenizer.convert_tokens_to_ids("</think>")
    draw = random_model(SIZE, 3)
    rows = inner.allocate_vocab_mask(SIZE, 1, "cpu")
    while not inner.is_terminated():
        rows.fill_(-1)
        inner.fill_vocab_mask(rows, 0)
        token = close if len(asked.output_ids) == 15 else draw(rows[0].numpy().view(np.uint32), 0)
        inner.accept_token(token)
        asked.output_ids.append(token)
    assert len(asked.output_ids) <= 40
    jsonschema.validate(json.loads(tokenizer.decode(asked.output_ids[16:-1])), SCHEMA)


def test_single_tokens_of_a_row_can_be_set(made):
    backend, _ = made()
    rows = torch.full((2, SIZE // 32), 7, dtype=torch.int32)
    backend.set_token_filter(rows, [3, 64], 1)
    assert np.flatnonzero(np.unpackbits(rows[1].numpy().view(np.uint8), bitorder="little")).tolist() == [
        3,
        64,
    ]
    backend.set_token_filter(rows, [3], 1, is_allowed=False, reset_vocab_mask=False)
    assert rows[0, 0] == 7 and rows[1, 0] == 0


def test_an_option_that_is_not_known_is_refused_at_the_start(made, serving):
    from tokenform.errors import OptionError

    serving.constrained_json_whitespace_pattern = " ?"
    with pytest.raises(OptionError, match="whitespace"):
        made()
