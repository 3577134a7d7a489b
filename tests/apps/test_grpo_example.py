"""`examples/grpo.py`: rewards as trainers call them, and steps that raise what the model leaves to the
constraint."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import torch


@pytest.fixture(scope="module")
def grpo() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "grpo_example", Path(__file__).parents[2] / "examples" / "grpo.py"
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rewards(grpo):
    wanted = json.dumps({"parcel": 12, "status": "paid"})
    texts = ['{"parcel": 12, "status": "paid"}', '{"parcel": 13, "status": "paid"}', "[1]", "no"]
    assert grpo.right(texts, [wanted] * 4, prompts=texts) == [1.0, 0.5, 0.0, 0.0]
    feasible = grpo.Feasible(grpo.writer_of(copied=False).vocabulary)
    found = feasible(["{", *texts])
    assert found[1:3] == [1.0, 1.0] and 0 < found[0] < 1 and found[3:] == [0.0, 0.0]


def test_advantages_compare_a_group(grpo):
    found = grpo.advantages(torch.tensor([[0.0, 1.0], [0.5, 0.5]]))
    assert found[0, 1] > 0 > found[0, 0] and found[1].tolist() == [0.0, 0.0]


def test_some_steps_raise_the_feasible_mass(grpo):
    told: list[str] = []
    grpo.train(3, prompts=2, group=2, every=1, tell=told.append)
    masses = [float(line.rpartition(" ")[2]) for line in told]
    assert masses[-1] > masses[0] + 3
