"""What a chat model writes of a pattern, and the likeliest of it and of the prompt's own spans.

    python benchmarks/spans.py .real/smollm2                 # five minutes on one core
    python benchmarks/spans.py .real/smollm2 --beam 4        # a search in place of the greedy text

Purpose: masked greedy decoding enters a text by the likeliest token that the pattern allows, also where the
model meant another; a value that stands in the prompt may be far likelier as a whole.  78 tasks of 13 kinds,
made by rule: an address, a link, a version, ... that stands in the prompt.  Right is the whole value.
Spans are the parts of the prompt that match the pattern and begin and end with a word; texts are compared by
their log-probability without a mask, the end included.
Needs a model with a chat template (`make real` brings one).
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from typing import NamedTuple

import torch

import tokenform as tf

USERS = ["jane.doe", "info", "omar", "support", "lena.fischer", "b.wright"]
SITES = ["example.org", "shop.net", "mail.com", "acme.com", "uni.de", "post.org"]
PARTS = ["login", "search", "export", "print", "mail", "cache"]
TAGS = ["spring", "football", "pyconf", "jazz", "garden", "vote"]
AUTHORS = ["Ada King", "Karl Berg", "Ines Duarte", "Tom Okafor", "Lena Fischer", "Omar Haddad"]
MINUTES = ["15", "30", "45", "00", "10", "20"]
MAIL, ASKED = r"[a-z.]+@[a-z]+\.[a-z]+", "What is the e-mail address? You can reach us at {} on weekdays."


class Task(NamedTuple):
    """A prompt, in which {} stands for the value, and the pattern that it matches."""

    kind: str
    prompt: str
    pattern: str
    value: str


def tasks(i: int) -> list[Task]:
    """One of each kind."""
    mail, site = f"{USERS[i]}@{SITES[i]}", SITES[i]
    link, version = f"https://{site}/{USERS[i].split('.')[0]}", f"{i + 1}.{i + 3}.{2 * i}"
    return [
        Task("mail alone", "Write to {} for details.", MAIL, mail),
        Task("mail", ASKED, MAIL, mail),
        Task("mail, wide", ASKED, r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}", mail),
        Task("site", "Which site is it? Please visit {} to learn more.", r"[a-z]+\.[a-z]{2,3}", site),
        Task("link", "Give me the link. The page is at {} now.", r"https?://[a-z./]+", link),
        Task(
            "address",
            "Which address does the server have? The server is at {}.",
            r"\d+\.\d+\.\d+\.\d+",
            f"10.0.{i + 1}.{20 + 7 * i}",
        ),
        Task("version", "Which version is installed? We run version {} of it.", r"\d+\.\d+\.\d+", version),
        Task(
            "branch",
            "Name the branch. I pushed it to the branch {}.",
            r"[a-z]+(-[a-z]+)*",
            f"fix-{PARTS[i]}-bug",
        ),
        Task("tag", "Which hashtag is used? Everybody posts with {} today.", "#[a-z]+", f"#{TAGS[i]}"),
        Task(
            "time",
            "When does it open? The shop opens at {} every day.",
            r"\d{1,2}:\d{2}",
            f"{7 + i}:{MINUTES[i]}",
        ),
        Task(
            "price",
            "What does it cost? The lamp costs {} in the shop.",
            r"\$\d+\.\d{2}",
            f"${19 + 8 * i}.{50 + i}",
        ),
        Task(
            "author",
            "Who wrote it? The report was written by {}.",
            "[A-Z][a-z]+ [A-Z][a-z]+",
            AUTHORS[i],
        ),
        Task("item", "The item {} is sold out.", r"[A-Z]-\d+/[A-Z]", f"{'XKQMTP'[i]}-{104 + 31 * i}/B"),
    ]


def spans(prompt: str, pattern: str) -> list[str]:
    """The parts of a prompt that match the pattern, from a word's beginning to a word's end."""
    begins = [at for at in range(len(prompt)) if not (at and prompt[at - 1].isalnum())]
    ends = [at for at in range(1, len(prompt) + 1) if at == len(prompt) or not prompt[at].isalnum()]
    found = [prompt[begin:end] for begin in begins for end in ends if begin < end]
    return list(dict.fromkeys(text for text in found if re.fullmatch(pattern, text)))


def likeliest(writer: tf.Generator, prompt: str, grammar: tf.Grammar, texts: list[str]) -> str:
    """The text that the model most probably answers with, of these."""
    with torch.no_grad():
        scores = tf.logprob(writer, texts, prompt=writer.show(prompt, grammar).ids).total
    return texts[int(scores.argmax())]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--beam", type=int, help="texts come from a search of this width")
    told = parser.parse_args()
    sampler = tf.Beam(told.beam) if told.beam else tf.Local(temperature=0.0)
    writer = tf.Generator(told.model, sampler=sampler)
    written, chosen = Counter[str](), Counter[str]()
    for task in (task for i in range(6) for task in tasks(i)):
        prompt, grammar = task.prompt.format(task.value), tf.regex(task.pattern)
        text = writer.generate(prompt, grammar, max_tokens=32).text
        options = list(dict.fromkeys([text, *spans(prompt, task.pattern)]))
        written[task.kind] += text == task.value
        chosen[task.kind] += likeliest(writer, prompt, grammar, options) == task.value
    print(f"{'right of 6':12} written  the likeliest of it and the spans")
    for kind in written:
        print(f"{kind:12} {written[kind]:7} {chosen[kind]:7}")
    print(f"{'all 78':12} {written.total():7} {chosen.total():7}")


if __name__ == "__main__":
    main()
