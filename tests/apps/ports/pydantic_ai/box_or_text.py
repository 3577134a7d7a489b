"""A model or a text, as the model chooses.

Source: pydantic-ai, page "Output", box_or_error: 19 lines."""

from pydantic import BaseModel

import tokenform as tf


class Box(BaseModel):
    width: int
    height: int
    depth: int
    units: str


prompts = ["The box is 10x20x30.", "The width is 10, the height 20, the depth 30, the units are cm."]
for result in tf.generate(prompts, schema=Box | str, max_tokens=60):
    print(result.value)

assert isinstance(result.value, Box | str)
