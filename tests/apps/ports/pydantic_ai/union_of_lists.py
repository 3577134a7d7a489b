"""A list of texts or a list of numbers; the type checker knows it.

Source: pydantic-ai, page "Output", colors_or_sizes: 10 lines."""

import tokenform as tf

prompts = ["red square, blue circle, green triangle", "square size 10, circle size 20, triangle size 30"]
for result in tf.generate(prompts, schema=list[str] | list[int], max_tokens=60):
    print(result.value)

assert isinstance(result.value, list)
