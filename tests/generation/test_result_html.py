"""What a notebook shows of a result is what the run recorded."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

import tokenform as tf

GRAMMAR = tf.json_schema(
    {"type": "object", "properties": {"a<b": {"type": "string"}}, "required": ["a<b"]}, strings="canonical"
)


@pytest.mark.parametrize("drafter", ["auto", None])
def test_the_record_of_a_run(drafter: str | None) -> None:
    result = tf.Generator(drafter=drafter).sample("Ada & Alan", GRAMMAR, seed=0, max_tokens=30)[0]
    assert math.fsum(result.token_logprobs) == pytest.approx(result.logprob)
    assert len(result.guessed) == len(result.tokens)
    assert (
        0 <= result.stats.accepted - sum(result.guessed) <= 1
    )  # the end of the text may have been guessed too
    page = ElementTree.fromstring(result._repr_html_().replace("⏎\n", ""))
    spans = [node for node in page if node.tag == "span"]
    assert "".join(node.text or "" for node in spans) == result.text
    drafts = [node for node in spans if "draft" in node.attrib["title"]]
    assert len(drafts) == sum(result.guessed)
    alone = [node.text for node in spans if "no other" in node.attrib["title"]]
    assert all(text and text in result.text for text in alone)


def test_weighted_draws_show_their_text() -> None:
    draw = tf.Generator().sample("x", tf.choice(["<a>", "b"]), seed=0, sampler=tf.CARS(), max_tokens=8)[0]
    assert draw._repr_html_() in ("<pre>&lt;a&gt;</pre>", "<pre>b</pre>")
