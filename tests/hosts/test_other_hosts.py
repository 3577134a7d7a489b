"""ExLlamaV3, ONNX Runtime GenAI, LMDeploy, TensorRT-LLM: each in its own code where that runs without a GPU.

TensorRT-LLM does not: its calls are those of `guided_decoder.py` of 1.2, written down here.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace

import jsonschema
import numpy as np
import pytest
import torch

import tokenform as tf
from tokenform.builtin.loading import WEIGHTS, load
from tokenform.errors import BudgetTooSmall

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "multipleOf": 7},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "uniqueItems": True, "minItems": 1},
    },
    "required": ["n", "tags"],
    "additionalProperties": False,
}
END = 2


@pytest.fixture(scope="module")
def vocabulary():
    return tf.Vocabulary.from_tokenizer(load()[1])


def document(tokens, vocabulary):
    written = json.loads(b"".join(vocabulary.token(int(one)) for one in tokens if one != END))
    jsonschema.validate(written, SCHEMA)
    return written


def allowed(mask, size):
    """The tokens of a packed row, as a host reads it."""
    bits = np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")[:size]
    return np.flatnonzero(bits)


# --- ExLlamaV3: its Filter, which keeps a journal of tokens, feeds and rewinds -----------------------------


@pytest.fixture(scope="module")
def exllamav3(needs):
    """The package without the part that compiles for a GPU when it is imported."""
    folder = next((Path(one) / "exllamav3" for one in sys.path if (Path(one) / "exllamav3").is_dir()), None)
    if folder is None:
        pytest.skip("exllamav3 is not here; `make hosts` installs it")
    names = ("exllamav3", "exllamav3.generator", "exllamav3.generator.filter", "exllamav3.tokenizer")
    for name in names:
        module = sys.modules[name] = ModuleType(name)
        module.__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
    sys.modules["exllamav3.tokenizer"].Tokenizer = object
    filters = importlib.import_module("exllamav3.generator.filter.filter")
    sys.modules["exllamav3"].Filter = filters.Filter
    yield filters
    for name in [one for one in sys.modules if one.partition(".")[0] == "exllamav3"]:
        del sys.modules[name]


@pytest.fixture
def job():
    """As much of a `Job` as a filter reads."""
    return SimpleNamespace(generator=SimpleNamespace(padded_vocab_size=2048), max_new_tokens=40, new_tokens=0)


@pytest.fixture
def exllama_filter(exllamav3, job):
    from tokenform.integrations.exllamav3 import GrammarFilter

    class Tokenizer(SimpleNamespace):
        __hash__ = object.__hash__

    inner = load()[1].backend_tokenizer
    tokenizer = Tokenizer(tokenizer=inner, config=SimpleNamespace(eos_token_id_list=[END]), eos_token_id=END)

    def make(grammar=SCHEMA, **options):
        made = GrammarFilter(tokenizer, grammar, **options)
        assert isinstance(made, exllamav3.Filter)
        made.attach(job)  # as `Job.activate` does
        made.reset()
        made.is_active = made.trigger_token is None
        return made

    return make


def drawn(filter_, random):
    mask = filter_.get_next_logit_mask()
    assert mask.dtype == torch.int32 and tuple(mask.shape) == (1, 64)
    return int(random.choice(allowed(mask[0], 2048)))


@pytest.mark.parametrize("seed", range(6))
def test_a_job_of_exllamav3_with_tokens_taken_back(exllama_filter, job, vocabulary, seed):
    random, filter_ = np.random.default_rng(seed), exllama_filter()
    tokens, ended = [], False
    while not ended:
        tokens.append(drawn(filter_, random))
        ended = filter_.feed(tokens[-1])
        job.new_tokens += 1
        if random.random() < 0.2 and len(tokens) > 3:  # a banned string
            before = filter_.text.going.tokens
            filter_.rewind(3)
            assert filter_.is_active and filter_.text.going.tokens == before[:-3] == tokens[:-3]
            del tokens[-3:]
            job.new_tokens -= 3
            ended = False
        assert len(tokens) < 40
    document(tokens, vocabulary)


def test_a_filter_of_exllamav3_waits_for_its_trigger(exllama_filter, job, vocabulary):
    random, filter_ = np.random.default_rng(1), exllama_filter(trigger_token=300)
    for token in (301, 302, 300):  # a thought of three tokens
        assert not filter_.is_active and not filter_.feed(token)
        job.new_tokens += 1
    assert filter_.is_active
    tokens = [drawn(filter_, random)]
    while not filter_.feed(tokens[-1]):
        tokens.append(drawn(filter_, random))
    assert 3 + len(tokens) <= 40
    first = document(tokens, vocabulary)
    filter_.rewind(len(tokens))  # ... back to the trigger, and once more
    for token in tokens:
        filter_.feed(token)
    assert not filter_.is_active and first
    with pytest.raises(AssertionError):
        filter_.rewind(99)


def test_a_filter_of_exllamav3_that_fails_ends_its_job(exllama_filter):
    filter_ = exllama_filter()
    wrong = next(one for one in range(2048) if one not in allowed(filter_.get_next_logit_mask()[0], 2048))
    assert filter_.feed(wrong) and filter_.is_completed()


# --- ONNX Runtime GenAI: its generator runs the built-in model ---------------------------------------------


@pytest.fixture(scope="module")
def onnx_model(needs, tmp_path_factory):
    genai = needs("onnxruntime_genai")
    needs("onnx_ir")
    builder = needs("onnxruntime_genai.models.builder")
    folder = str(tmp_path_factory.mktemp("onnx"))
    known = str(WEIGHTS / "model"), folder, "fp32", "cpu", folder
    options = builder.parse_extra_options(None, *known, [])
    builder.create_model(None, *known, **options)
    return genai.Model(folder)


@pytest.mark.filterwarnings("ignore")
def test_a_loop_of_onnx_runtime_genai(needs, onnx_model, vocabulary):
    genai = needs("onnxruntime_genai")
    from tokenform.integrations.onnxruntime_genai import GrammarMasks

    tokenizer = load()[1]
    prompt = np.array(tokenizer("The order: ")["input_ids"], dtype=np.int32)
    for seed, most in ((1, 14), (2, 40)):
        params = genai.GeneratorParams(onnx_model)
        params.set_search_options(
            max_length=len(prompt) + most, batch_size=3, do_sample=True, temperature=1.5, random_seed=seed
        )
        generator = genai.Generator(onnx_model, params)
        generator.append_tokens(np.stack([prompt] * 3))
        masks = GrammarMasks([SCHEMA, None, tf.regex("[a-z]{3,9}")], tokenizer, max_tokens=most)
        while not generator.is_done():
            masks(generator)
            generator.generate_next_token()
        first, _, third = (generator.get_sequence(at)[len(prompt) :].tolist() for at in range(3))
        document(first[: first.index(END)] if END in first else first, vocabulary)
        word = b"".join(vocabulary.token(one) for one in third[: third.index(END)])
        assert re.fullmatch(b"[a-z]{3,9}", word)
    with pytest.raises(BudgetTooSmall):
        GrammarMasks([SCHEMA], tokenizer, max_tokens=3)


# --- LMDeploy: the function of its PyTorch engine that calls processors ------------------------------------


def test_lmdeploys_engine_calls_the_processors(needs, vocabulary):
    engine = needs("lmdeploy.pytorch.engine.logits_process")
    messages = needs("lmdeploy.messages")
    from tokenform.integrations.torch_processors import LMDeployProcessor

    config = [
        messages.GenerationConfig(
            max_new_tokens=40, logits_processors=[LMDeployProcessor(SCHEMA, vocabulary, max_tokens=40)]
        )
        for _ in range(3)
    ]
    processors = [config[0].logits_processors, None, config[1].logits_processors]
    torch.manual_seed(4)
    ids, ended = torch.tensor([[5, 6], [5, 6], [7, 8]]), set()
    while not {0, 2} <= ended and ids.shape[1] < 42:
        logits = torch.randn(3, vocabulary.size)
        free = logits[1].clone()
        scores = engine._apply_custom_logits_processors(processors, ids, logits)
        assert torch.equal(scores[1], free)
        taken = scores.argmax(-1)
        ended |= set(np.flatnonzero(taken == END).tolist())
        ids = torch.cat([ids, taken[:, None]], 1)
    for row in (0, 2):
        written = ids[row, 2:].tolist()
        document(written[: written.index(END)], vocabulary)


# --- TensorRT-LLM: the calls that its GuidedDecoder makes --------------------------------------------------


class GuideType(Enum):
    JSON, JSON_SCHEMA, REGEX, EBNF_GRAMMAR, STRUCTURAL_TAG, OTHER = range(6)


@pytest.fixture(scope="module")
def tensorrt_llm():
    from tokenform.integrations.tensorrt_llm import MatcherFactory

    config = SimpleNamespace(
        tokenizer_str=load()[1].backend_tokenizer.to_str(), stop_token_ids=[END], encoded_vocab=None
    )
    return MatcherFactory(config, 2080, max_num_draft_tokens=3)


def params(kind, guide):
    return SimpleNamespace(guide_type=GuideType[kind], guide=guide)


def built(matcher, new_token, drafts, rows):
    """As `GuidedDecoder._build`: the new token, a row, and for each draft that is accepted another."""
    advanced = 0
    if new_token is not None:
        if matcher.is_terminated():
            return 0
        assert matcher.accept_token(new_token)
    advanced += 1
    if not matcher.is_terminated():
        matcher.fill_next_token_bitmask(rows, 0)
        for at, token in enumerate(drafts, 1):
            if not matcher.accept_token(token):
                break
            advanced += 1
            if matcher.is_terminated():
                break
            matcher.fill_next_token_bitmask(rows, at)
    return advanced


@pytest.mark.parametrize("seed", range(5))
def test_tensorrt_llms_calls_with_drafts(tensorrt_llm, vocabulary, seed):
    random = np.random.default_rng(seed)
    matcher = tensorrt_llm.create(params("JSON_SCHEMA", json.dumps(SCHEMA)))
    rows = torch.zeros((4, 65), dtype=torch.int32)
    tokens, new = [], None
    while END not in tokens:
        drafts = random.integers(2048, size=3).tolist()
        if new is not None and random.random() < 0.7:  # drafts that may come
            probe = tensorrt_llm.create(params("JSON_SCHEMA", json.dumps(SCHEMA)))
            assert all(probe.accept_token(one) for one in tokens)
            row, drafts = torch.zeros((1, 65), dtype=torch.int32), []
            while len(drafts) < 3 and not probe.is_terminated():
                probe.fill_next_token_bitmask(row, 0)
                drafts.append(int(random.choice(allowed(row[0], 2048))))
                assert probe.accept_token(drafts[-1])
        advanced = built(matcher, new, drafts, rows)
        sampled = []
        for at in range(advanced):
            sampled.append(int(random.choice(allowed(rows[at], 2048))))
            if sampled[-1] == END or at == len(drafts) or sampled[-1] != drafts[at]:
                break
        matcher.rollback(advanced - len(sampled))  # as `_rollback_rejected_tokens`
        tokens += sampled
        new = sampled[-1]
    assert not matcher.is_terminated() and matcher.accept_token(END) and matcher.is_terminated()
    assert not matcher.accept_token(5)
    document(tokens, vocabulary)


def test_tensorrt_llms_kinds_and_errors(tensorrt_llm):
    for kind, guide in (
        ("JSON", None),
        ("REGEX", "[0-9]+"),
        ("EBNF_GRAMMAR", 'root ::= "a" | "b"'),
        ("STRUCTURAL_TAG", json.dumps({"format": {"type": "any_text"}})),
    ):
        rows = torch.zeros((1, 65), dtype=torch.int32)
        tensorrt_llm.create(params(kind, guide)).fill_next_token_bitmask(rows, 0)
        assert len(allowed(rows[0], 2080)) > 0
    with pytest.raises(ValueError, match="/properties/a"):
        tensorrt_llm.create(params("JSON_SCHEMA", '{"properties": {"a": {"type": "strin"}}}'))
    with pytest.raises(ValueError, match="OTHER"):
        tensorrt_llm.create(params("OTHER", ""))
