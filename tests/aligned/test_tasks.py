"""Program synthesis, molecules and patterns: samplers agree on log Z, with small trained models."""

from __future__ import annotations

import csv
import math
import os
import re
import tarfile
from pathlib import Path

import numpy as np
import pytest
from benchmarks.suites.ngram import NgramModel
from earley import GrammarAutomaton

import tokenform
from tokenform.decoding.aligned.asap import ASAp
from tokenform.decoding.aligned.cars import CARS
from tokenform.decoding.aligned.masked import Masked
from tokenform.decoding.aligned.predicate import Predicate
from tokenform.decoding.aligned.smc import SMC
from tokenform.errors import SamplingError
from tokenform_bench.fidelity import evaluate_fidelity

SHARED = Path(os.environ.get("TOKENFORM_SHARED", Path(__file__).parents[3] / "shared"))
SOLUTION = re.compile(r"^(\(define-fun (?:inv|f) .*\))$|^Molecule: (\S+)$", re.MULTILINE)
TASKS = [
    "BV4/find_inv_eq_bvand_4bit",
    "BV4/find_inv_bvsge_bvnot_4bit",
    "SLIA/univ_1_short",
    "SLIA/firstname",
    "smiles/acrylates",
    "smiles/isocyanates",
]


def data(name):
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"{path} is missing; set TOKENFORM_SHARED to the folder that holds data/{name}")
    return path


def task(name):
    """The grammar's text, and a model trained on the examples of the task's prompt."""
    with tarfile.open(data("gad-tasks.tar.xz")) as archive:
        grammar, prompt = (archive.extractfile(name + end).read().decode() for end in (".ebnf", ".txt"))
    texts = [a or b for a, b in SOLUTION.findall(prompt)]
    assert texts
    return grammar, NgramModel(texts, order=6)


def compiled(name, grammar, model):
    """The engine's automaton where it reads these grammars, else the plain double (not for molecules)."""
    if (gbnf := getattr(tokenform, "gbnf", None)) is not None:
        return gbnf(grammar).compile(tokenform.Vocabulary(model.tokens, eos=list(model.eos)))
    if name.startswith("smiles"):
        pytest.skip("the molecules need the engine's context-free grammars (tokenform.gbnf)")
    return GrammarAutomaton(grammar, model.tokens, model.eos)


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_estimates_of_log_z_agree_within_three_standard_errors(name):
    grammar, model = task(name)
    automaton = compiled(name, grammar, model)
    samplers = {
        "local masking": Masked(),
        "ASAp": ASAp(),
        "CARS": CARS(max_attempts=20_000),
        "SMC(20)": SMC(20),
        "SMC-AWRS(20)": SMC(20, weights="rejection"),
    }
    result = evaluate_fidelity(model, automaton, samplers, max_tokens=60, draws=150, limit=0)
    print(f"\n{name}\n{result.table()}")
    rows = {row.sampler: row for row in result.rows}
    for a in ("CARS", "SMC(20)", "SMC-AWRS(20)"):
        for b in ("CARS", "SMC(20)", "SMC-AWRS(20)"):
            gap = abs(rows[a].log_z - rows[b].log_z)
            assert gap <= 3 * math.hypot(rows[a].log_z_error, rows[b].log_z_error) + 1e-9
    # a target distribution has more of the model's probability than local masking, up to the noise of the
    # draws
    assert rows["CARS"].mean_logprob >= rows["local masking"].mean_logprob - 3
    # a step by rejection tests far fewer tokens than there are
    assert rows["SMC-AWRS(20)"].evaluations_per_token / 20 < 0.5 * model.vocab_size


@pytest.mark.slow
def test_patterns_beyond_regular_languages():
    """Patterns with backreferences and lookarounds, as complete predicates beside a bound on length."""
    with data("awrs-patterns.csv").open(newline="") as file:
        patterns = [row["regex"] for row in csv.DictReader(file)]
    compiled = []
    for pattern in patterns:
        try:
            matcher = re.compile(pattern)
        except re.error:
            continue
        if re.search(r"\\[1-9]", pattern):
            compiled.append(matcher)
    assert len(compiled) >= 10
    model = NgramModel(["abab", "aa bb", "abcabc", "1212", "xx", "123-123"] * 3, order=2, words=0)
    agreed = 0
    for matcher in compiled[:6]:
        constraint = Predicate(
            model.tokens,
            model.eos,
            prefix=lambda text: len(text) <= 4,
            complete=lambda text, matcher=matcher: matcher.search(text) is not None,
            name=matcher.pattern,
        )
        sampler = SMC(20, max_attempts=20)
        problem = sampler.bind(model, constraint, max_tokens=4)
        populations = sampler._runs(problem, list(range(8)), 0)
        estimates = np.exp([p.log_z for p in populations])
        rejection = CARS(learn="rejected", max_attempts=1000)
        try:
            reference = rejection.sample(rejection.bind(model, constraint, max_tokens=4), 10, seed=0)
        except SamplingError as error:  # too rare for rejection: nothing to compare with
            assert "1000" in str(error)
            continue
        assert all(matcher.search(draw.text) for draw in reference.draws)
        z = math.exp(reference.log_z.value)
        error = math.hypot(z * reference.log_z.error, estimates.std(ddof=1) / math.sqrt(8))
        assert abs(estimates.mean() - z) <= 4 * error
        agreed += 1
    assert agreed >= 2
