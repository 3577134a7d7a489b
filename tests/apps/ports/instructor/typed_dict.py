"""A typed dictionary.

Source: instructor, page "TypedDicts": 15 lines."""

from typing_extensions import TypedDict

import tokenform as tf


class User(TypedDict):
    name: str
    age: int


user = tf.generate("Timothy Brown is 32 years old.", schema=User).value

assert user["age"] == 32
