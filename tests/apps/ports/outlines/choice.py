"""One of four texts.

Source: Outlines, page "Transformers", Multiple Choice: 10 lines."""

from typing import Literal

import tokenform as tf

city = tf.generate(
    "The capital of France is Paris.", schema=Literal["Paris", "London", "Rome", "Berlin"]
).value
print(city)

assert city in ("Paris", "London", "Rome", "Berlin")
