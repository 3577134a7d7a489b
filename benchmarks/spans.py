"""What a chat model writes of a bare pattern: token by token, and with the prompt's spans weighed as wholes.

    python benchmarks/spans.py .real/smollm2                 # three minutes on one core
    python benchmarks/spans.py .real/smollm2 --form field    # as the field of a JSON document; or string
    python benchmarks/spans.py .real/smollm2 --beam 4        # a search in place of the default

Purpose: masked greedy decoding enters a text by the likeliest token that the pattern allows, also where the
model meant another; a value that stands in the prompt may be far likelier as a whole (`prompt_spans.py`).  78
tasks of 13 kinds, made by rule: an address, a link, a version, ... that stands in the prompt.  And 66 of 11
kinds whose answer does not, though words of the prompt match: capitals, sums, opposites, ...  Right is the
whole value.
Needs a model with a chat template (`make real` brings one).
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import NamedTuple

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


def asked(kind: str, question: str, pattern: str, answers: str) -> list[Task]:
    """One task for each `subject=answer`."""
    listed = (one.split("=") for one in answers.split("; "))
    return [Task(kind, question.format(subject), pattern, answer) for subject, answer in listed]


WORD, NAME, NUMBER = "[a-z]+", "[A-Z][a-z]+", r"\d+"
REVIEWS = (
    "The film was wonderful, I loved every minute.=positive; "
    "The food was cold and the waiter rude.=negative; What a great hotel!=positive; "
    "I hate this phone, it broke at once.=negative; "
    "Best concert of my life.=positive; The worst book I ever read.=negative"
)
CITIES = "France=Paris; Italy=Rome; Japan=Tokyo; Germany=Berlin; Spain=Madrid; Egypt=Cairo"
OPPOSITES = "hot=cold; big=small; up=down; fast=slow; day=night; rich=poor"
SUMS = "3 plus 4=7; 2 plus 5=7; 10 plus 10=20; 6 + 1=7; 12 + 5=17; 8 + 8=16"
NEXT = "17=18; 4=5; 99=100; 30=31; 7=8; 120=121"
PLURALS = "cat=cats; house=houses; box=boxes; child=children; city=cities; dog=dogs"
COLOURS = "the sky=blue; grass=green; snow=white; blood=red; a banana=yellow; coal=black"
COUNTS = (
    "sides has a triangle=3; sides has a square=4; days has a week=7; months has a year=12; "
    "seconds has a minute=60; legs has a dog=4"
)
CAPITALS = "hello=HELLO; stop=STOP; yes=YES; cat=CAT; open=OPEN; help=HELP"
FRENCH = "dog=chien; cat=chat; house=maison; water=eau; bread=pain; red=rouge"
MISSPELT = "freind=friend; adress=address; becuase=because; tommorow=tomorrow; teh=the; hapy=happy"
ELSEWHERE = [
    *asked("capital", "What is the capital of {}?", NAME, CITIES),
    *asked("opposite", "What is the opposite of {}?", WORD, OPPOSITES),
    *asked("sum", "What is {}?", NUMBER, SUMS),
    *asked("next", "Which number comes after {}?", NUMBER, NEXT),
    *asked("plural", "What is the plural of the word {}?", WORD, PLURALS),
    *asked("colour", "What is the colour of {}?", WORD, COLOURS),
    *asked("count", "How many {}?", NUMBER, COUNTS),
    *asked("capitals", "Write the word {} in capital letters.", "[A-Za-z]+", CAPITALS),
    *asked("french", "What is the French word for {}?", WORD, FRENCH),
    *asked("sentiment", "Is this review positive or negative? {}", WORD, REVIEWS),
    *asked("spelling", "Correct the spelling of the word {}.", WORD, MISSPELT),
]


NAMES = {"mail alone": "email", "mail": "email", "mail, wide": "email", "tag": "hashtag"}
"""Of fields, where another word than the kind."""


def constraint(task: Task, form: str) -> tuple[tf.Grammar, str | None]:
    """The constraint, and the field in which the value is."""
    if form == "bare":
        return tf.regex(task.pattern), None
    value = {"type": "string", "pattern": f"^({task.pattern})$"}
    if form == "string":
        return tf.json_schema(value), None
    name = NAMES.get(task.kind, task.kind)
    field = {"properties": {name: value}, "required": [name], "additionalProperties": False}
    return tf.json_schema({"type": "object", **field}), name


class Written:
    """What a sampler has written: right values by kind, forward passes, seconds."""

    def __init__(self, sampler: object) -> None:
        self.sampler, self.right = sampler, Counter[str]()
        self.passes, self.seconds = 0, 0.0

    def write(self, writer: tf.Generator, task: Task, grammar: tf.Grammar, name: str | None) -> None:
        began = time.perf_counter()
        result = writer.generate(task.prompt, grammar, max_tokens=48, sampler=self.sampler)
        self.seconds += time.perf_counter() - began
        self.passes += result.stats.forwards
        self.right[task.kind] += (result.value if name is None else result.value[name]) == task.value


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--beam", type=int, help="texts come from a search of this width")
    parser.add_argument("--form", choices=["bare", "field", "string"], default="bare")
    told = parser.parse_args()
    sampler = tf.Beam(told.beam) if told.beam else tf.Local(temperature=0.0)
    writer, by_token = tf.Generator(told.model), tf.Local(temperature=0.0, values="token")
    stands = [task._replace(prompt=task.prompt.format(task.value)) for i in range(6) for task in tasks(i)]
    print(f"{'right of 6':12} by token  written")
    for listed in (stands, ELSEWHERE):
        token, written = Written(by_token), Written(sampler)
        for task in listed:
            grammar, name = constraint(task, told.form)
            for one in (token, written):
                one.write(writer, task, grammar, name)
        for kind in token.right:
            print(f"{kind:12} {token.right[kind]:8} {written.right[kind]:8}")
        print(f"{f'all {len(listed)}':12} {token.right.total():8} {written.right.total():8}")
        print(f"{'passes':12} {token.passes:8} {written.passes:8}")
        print(f"{'seconds':12} {token.seconds:8.1f} {written.seconds:8.1f}\n")


if __name__ == "__main__":
    main()
