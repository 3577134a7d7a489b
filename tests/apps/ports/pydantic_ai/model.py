"""A model, and what the call cost.

Source: pydantic-ai, page "Output", olympics: 9 lines."""

from pydantic import BaseModel

import tokenform as tf


class Place(BaseModel):
    city: str
    country: str


result = tf.generate("The olympics of 2012 were in London, in the United Kingdom.", schema=Place)
print(result.value)
print(result.stats.forwards, result.stats.tokens)

assert isinstance(result.value, Place)
