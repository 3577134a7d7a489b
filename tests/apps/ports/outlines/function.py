"""The arguments of a function, ready to call it.

Source: Outlines, README, Open functions: 7 lines."""

import tokenform as tf


def add(a: int, b: int):
    return a + b


print(add(**tf.generate("a is 3 and b is 4.", schema=add).value))

assert add(**tf.generate("a is 3 and b is 4.", schema=add).value) == 7
