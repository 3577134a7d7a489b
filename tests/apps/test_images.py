"""Images and sound are refused before anything runs, with the way out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tokenform as tf
from tokenform import errors

IMAGE = np.zeros((4, 4, 3), np.uint8)
PART = {"type": "image", "image": IMAGE}
MESSAGE = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, PART]}


@pytest.mark.parametrize("prompt", [IMAGE, [IMAGE, "What is this?"], b"\x89PNG", [MESSAGE]], ids=type)
def test_what_is_no_text_is_refused_with_the_way_out(small: tf.Generator, prompt: Any) -> None:
    with pytest.raises(errors.OptionError, match="GrammarLogitsProcessor"):
        small.sample(prompt, tf.choice(["cat", "dog"]))
    with pytest.raises(errors.OptionError, match="GrammarLogitsProcessor"):
        tf.generate(prompt, choices=["cat", "dog"])


def test_a_program_refuses_them_too() -> None:
    with pytest.raises(errors.OptionError, match="GrammarLogitsProcessor"):
        tf.Program() + IMAGE
