"""A grammar of the library in other engines' languages."""

from __future__ import annotations

import random
import re

import pytest

from suites import dialects
from tokenform.frontends import grammars


@pytest.mark.parametrize("name", ["sql", "c", "javascript"])
def test_names_that_are_no_keywords_are_a_plain_pattern_too(name):
    text = grammars.text(name)
    found = dialects._EXCLUDED.search(text)
    terminal, words, pattern, flags = found.groups()
    folded = re.IGNORECASE if flags else 0
    looking = re.search(rf"^{terminal}: /(.*)/i?$", text, re.MULTILINE).group(1)
    whole, plain = re.compile(looking, folded), re.compile(dialects.other_names(words, pattern), folded)
    keywords, rng, taken = dialects._spelled(dialects.sre_parse.parse(words)), random.Random(0), 0
    for _ in range(5000):
        word = rng.choice(keywords)
        word = word[: rng.randint(0, len(word))] if rng.random() < 0.4 else word
        word += "".join(rng.choice("asd_9$EN") for _ in range(rng.randint(0, 2)))
        word = word.upper() if rng.random() < 0.2 else word
        assert bool(plain.fullmatch(word)) == bool(whole.fullmatch(word)), word
        taken += bool(plain.fullmatch(word))
    assert 500 < taken < 4500
    assert "(?!" not in dialects.dialects(text)["glrmask"]
    assert "(?!" not in dialects.dialects(text)["llguidance"]
