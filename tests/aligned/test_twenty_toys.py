"""The bounds of every sampler on twenty random toys: ten tables and ten small random transformers.

All speak the toy's language (17 strings, 89 token sequences).  Distributions that can be computed are
compared exactly; those that are estimated from draws are allowed what as many exact draws would show.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from toy import (
    EOS,
    TOKENS,
    TableModel,
    local_distribution,
    toy_automaton,
    toy_complete,
    toy_prefix,
    trie_distribution,
)

from tokenform.decoding.aligned.asap import ASAp
from tokenform.decoding.aligned.cars import CARS
from tokenform.decoding.aligned.enumeration import enumerate_target, sampling_noise, total_variation
from tokenform.decoding.aligned.masked import Masked
from tokenform.decoding.aligned.mcmc import MCMC
from tokenform.decoding.aligned.predicate import Predicate
from tokenform.decoding.aligned.results import normalised
from tokenform.decoding.aligned.smc import SMC

pytestmark = pytest.mark.slow

TOYS = [f"table {i}" for i in range(10)] + [f"transformer {i}" for i in range(10)]


class Tabled:
    """A model's distributions, each computed once."""

    def __init__(self, model):
        self.model, self.known = model, {}
        self.eos, self.vocab_size, self.fingerprint = model.eos, model.vocab_size, model.fingerprint
        self.forwards = self.rows = 0

    def logprobs(self, prefixes):
        missing = [p for p in dict.fromkeys(map(tuple, prefixes)) if p not in self.known]
        if missing:
            self.known.update(zip(missing, self.model.logprobs(missing), strict=True))
        self.forwards, self.rows = self.model.forwards, self.model.rows
        return np.stack([self.known[tuple(p)] for p in prefixes])


def transformer(seed):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tokenform.decoding.aligned.backbone_lm import BackboneLM

    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=24, vocab_size=len(TOKENS), bos_token_id=0, eos_token_id=EOS,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    for parameter in model.parameters():
        parameter.data *= 12 if parameter.dim() > 1 else 1
    return Tabled(BackboneLM(model.eval(), eos=[EOS], fingerprint=f"transformer {seed}"))


class Toy:
    """A problem, its enumerated target and the distribution of local masking."""

    def __init__(self, name):
        kind, number = name.split()
        table = TableModel(2000 + int(number), scale=1.0)
        self.seed = int(number)
        self.model = table if kind == "table" else transformer(self.seed)
        self.prompt = () if kind == "table" else (1,)
        self.problem = Masked().bind(self.model, toy_automaton(), prompt=self.prompt)
        self.exact = enumerate_target(self.problem)
        self.target = self.exact.probabilities
        self.local = local_distribution(self.problem)

    def distribution(self, sampler, runs, constraint=None):
        """The distribution of a draw by all particles of `runs` runs, and each run's Ẑ/Z."""
        problem = sampler.bind(self.model, constraint or toy_automaton(), prompt=self.prompt)
        distribution, ratios = Counter(), []
        for population in sampler._runs(problem, list(range(runs)), self.seed):
            ratios.append(math.exp(population.log_z - self.exact.log_z))
            texts, _, weights = population.texts
            for tokens, weight in zip(texts, normalised(weights), strict=True):
                distribution[tokens] += weight / runs
        return distribution, np.array(ratios)


def unbiased(ratios):
    return abs(ratios.mean() - 1) <= 4 * ratios.std(ddof=1) / math.sqrt(len(ratios)) + 1e-12


@pytest.fixture(params=TOYS, scope="module")
def toy(request):
    return Toy(request.param)


def test_local_masking_is_a_control_that_is_off(toy):
    off = total_variation(toy.target, toy.local)
    assert sum(toy.local.values()) == pytest.approx(1)
    assert off > 0.05
    seen = Counter(draw.tokens for draw in Masked().sample(toy.problem, 1500, seed=toy.seed).draws)
    gap = total_variation(toy.local, {x: c / 1500 for x, c in seen.items()})
    assert gap <= 2 * sampling_noise(toy.local, 1500)


def test_asap_comes_within_its_bounds_and_its_certificate(toy):
    for samples, bound in ((100, 0.18), (300, 0.05), (1000, 0.02)):
        sample = ASAp().sample(toy.problem, samples, seed=toy.seed)
        off = total_variation(toy.target, trie_distribution(toy.problem, sample.trie))
        assert off <= bound
        assert off <= sample.certificate.distance + 1e-9
        assert sample.certificate.log_lower - 1e-9 <= toy.exact.log_z <= sample.certificate.log_upper + 1e-9


def test_cars_is_exact_from_the_first_draw_and_needs_few_attempts(toy):
    assert CARS().sample(toy.problem, 100, seed=toy.seed).counts.attempts <= 200
    first = Counter(
        draw.tokens for seed in range(30) for draw in CARS().sample(toy.problem, 20, seed=seed).draws
    )
    gap = total_variation(toy.target, {x: c / 600 for x, c in first.items()})
    assert gap <= 1.3 * sampling_noise(toy.target, 600)  # about four standard deviations of the noise


def test_smc_is_unbiased_and_near_the_target(toy):
    distribution, ratios = toy.distribution(SMC(20), 800)
    assert unbiased(ratios)
    assert total_variation(toy.target, distribution) <= 0.10


def test_awrs_weights_are_unbiased(toy):
    constraint = Predicate(TOKENS, [EOS], toy_prefix, toy_complete, on="bytes")
    distribution, ratios = toy.distribution(SMC(20), 150, constraint)
    assert unbiased(ratios)
    assert total_variation(toy.target, distribution) <= 0.10 + sampling_noise(toy.target, 1500)


def test_a_trie_makes_five_particles_enough(toy):
    twist = ASAp(explore=0).sample(toy.problem, 100, seed=toy.seed).trie
    distribution, ratios = toy.distribution(SMC(5, twist=twist), 3000)
    assert unbiased(ratios)
    assert total_variation(toy.target, distribution) <= 0.05


def test_chains_come_near_the_target_in_ten_steps(toy):
    seen = Counter(draw.tokens for draw in MCMC(10).sample(toy.problem, 300, seed=toy.seed).draws)
    gap = total_variation(toy.target, {x: c / 300 for x, c in seen.items()})
    assert gap <= 1.35 * sampling_noise(toy.target, 300)
