"""GRPO against a constraint: after it the built-in model writes valid documents without any constraint.

    python examples/grpo.py                # 41 seconds of one core: valid 0 % before, 100 % after
    python examples/grpo.py --trl          # the same rewards in TRL's GRPOTrainer (pip install trl)

Each step draws a group of documents for some prompts under the schema's masks, so that every one is valid
and the rewards compare what they say.  The masks are replayed by `tf.logprob`, which gives both parts of a
text's likelihood: `masked`, the law that the documents were drawn from and whose policy gradient GRPO takes;
and `log_mass`, how much of its probability the model itself leaves to what is allowed.  The loss raises that
too, and with it the share of valid documents among what the model writes freely.  The documents are cut in
every way that the masks allow (`forced="any"`): from the tokenizer's own cut alone the model would learn
nothing of what follows other cuts, which it takes when it writes freely (0 % valid after).

The prompt does not show the schema.  TRL draws its texts freely: there both parts are rewards
(`right`, `feasible`), and the first valid document has to be met by chance.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch

import tokenform as tf
from tokenform.builtin import load
from tokenform.builtin.prompt import format_prompt

STATES = ["new", "paid", "shipped", "lost"]
SCHEMA = {
    "type": "object",
    "properties": {"parcel": {"type": "integer"}, "status": {"enum": STATES}},
    "required": ["parcel", "status"],
    "additionalProperties": False,
}
GRAMMAR = tf.json_schema(SCHEMA)
FORMS = ["Parcel {} is {}.", "The parcel {} has been {}.", "Number {} was reported {} today."]
TOKENS = 40


def tasks(count: int, seed: int) -> list[dict[str, str]]:
    """Prompts with the document that is right, as columns of a data set."""
    draw, made = random.Random(seed), []
    for _ in range(count):
        number, state = draw.randint(100, 9999), draw.choice(STATES)
        told = draw.choice(FORMS).format(number, state)
        made.append({"prompt": told, "wanted": json.dumps({"parcel": number, "status": state})})
    return made


def right(completions: Sequence[str], wanted: Sequence[str], **_: Any) -> list[float]:
    """The share of fields that a document has right: a reward function as TRL calls them."""

    def share(text: str, truth: dict[str, Any]) -> float:
        try:
            found = json.loads(text)
        except ValueError:
            return 0.0
        return sum(isinstance(found, dict) and found.get(name) == value for name, value in truth.items()) / 2

    return [share(text, json.loads(truth)) for text, truth in zip(completions, wanted, strict=True)]


class Feasible:
    """A reward function: the share of a completion that the constraint takes, and all of it where it is
    valid."""

    __name__ = "feasible"

    def __init__(self, vocabulary: tf.Vocabulary) -> None:
        self._automaton = GRAMMAR.compile(vocabulary)

    def __call__(self, completions: Sequence[str], **_: Any) -> list[float]:
        found = []
        for text in completions:
            refused = self._automaton.check(text)
            found.append(1.0 if refused is None else refused[0] / (len(text) + 1))
        return found


def free_validity(writer: tf.Generator, asked: Sequence[dict[str, str]]) -> tuple[float, float]:
    """Of what the model writes freely at temperature 1: the share that is valid, and of fields that are
    right."""
    drawn = writer.sample(
        [one["prompt"] for one in asked], None, sampler=tf.Local(temperature=1.0), seed=0, max_tokens=TOKENS
    )
    texts = [one.text for (one,) in drawn]
    automaton = GRAMMAR.compile(writer.vocabulary)
    rewards = right(texts, [one["wanted"] for one in asked])
    return sum(map(automaton.matches, texts)) / len(texts), sum(rewards) / len(rewards)


def advantages(rewards: torch.Tensor) -> torch.Tensor:
    """[prompts, group]: each reward beside those of its group."""
    return (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)


def step(
    writer: tf.Generator, batch: Sequence[dict[str, str]], group: int, weight: float, seed: int
) -> tuple[torch.Tensor, float, float]:
    """The loss of a step, the mean reward, and the mean logarithm of the feasible mass of a text."""
    prompts = [writer.prompt_ids(one["prompt"]) for one in batch]  # without the schema
    hot = tf.Local(temperature=1.0, values="token", forced="any")  # the law whose likelihood `masked` is
    drawn = writer.sample(
        prompts, GRAMMAR, n=group, seed=seed, sampler=hot, max_tokens=TOKENS, progress=False
    )
    texts = [one.text for results in drawn for one in results]
    wanted = [one["wanted"] for one in batch for _ in range(group)]
    rewards = torch.tensor(right(texts, wanted)).view(len(batch), group)
    told = tf.logprob(
        writer, [one.tokens for results in drawn for one in results], GRAMMAR,
        prompt=[ids for ids in prompts for _ in range(group)],
    )  # fmt: skip
    ratio = (
        told.masked - told.masked.detach()
    ).exp() * told.inside  # drawn by this policy: 1, with its gradient
    policy = (ratio * advantages(rewards).view(-1, 1)).sum() / told.inside.sum()
    mass = told.log_mass.sum(-1)
    return -policy - weight * mass.mean(), float(rewards.mean()), float(mass.detach().mean())


def writer_of(*, copied: bool = True) -> tf.Generator:
    """The built-in model, or a copy of it to train, with prompts that don't show the schema."""
    model, tokenizer = load()
    model = copy.deepcopy(model) if copied else model
    return tf.Generator(model, tokenizer, format_prompt=lambda text, _: format_prompt(text))


def train(
    steps: int,
    *,
    prompts: int = 4,
    group: int = 6,
    weight: float = 0.05,
    rate: float = 3e-4,
    every: int = 10,
    tell: Callable[[str], Any] = print,
) -> tf.Generator:
    """A copy of the built-in model after so many steps; `weight`: of the feasible mass in the loss."""
    writer = writer_of()
    optimizer = torch.optim.AdamW(writer.model.parameters(), lr=rate)
    for number in range(steps):
        loss, reward, mass = step(writer, tasks(prompts, 1000 + number), group, weight, number)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(writer.model.parameters(), 1.0)
        optimizer.step()
        if number % every == 0 or number == steps - 1:
            tell(f"step {number}: reward {reward:.2f}, log of the feasible mass {mass:.2f}")
    return writer


def with_trl(steps: int) -> tf.Generator:
    """The same by TRL's trainer."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    writer = writer_of()
    rows = [{**one, "prompt": format_prompt(one["prompt"])} for one in tasks(8 * steps, 1000)]
    options = {"per_device_train_batch_size": 24, "num_generations": 6, "max_completion_length": TOKENS}
    GRPOTrainer(
        model=writer.model,
        processing_class=writer.tokenizer,
        reward_funcs=[right, Feasible(writer.vocabulary)],
        args=GRPOConfig("grpo", max_steps=steps, use_cpu=True, report_to=[], save_strategy="no", **options),
        train_dataset=Dataset.from_list(rows),
    ).train()
    writer.model.eval()
    return writer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--trl", action="store_true")
    given = parser.parse_args()
    held = tasks(100, 1)
    for name, steps in (("before", 0), ("after", given.steps)):
        trained = with_trl(steps) if given.trl and steps else train(steps)
        valid, fields = free_validity(trained, held)
        print(f"{name}: {valid:.0%} of what is written freely is valid, {fields:.0%} of fields are right")


if __name__ == "__main__":
    main()
