"""A number, as a number: no text to convert.

Source: Outlines, page "Transformers", Simple Type: 9 lines."""

import tokenform as tf

countries = tf.generate("There are 195 countries in the world.", schema=int).value
print(countries)

assert isinstance(countries, int)
