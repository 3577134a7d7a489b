"""A pydantic model with a list, as an instance.

Source: Outlines, page "Transformers", JSON Schema: 15 lines."""

from pydantic import BaseModel

import tokenform as tf


class Character(BaseModel):
    name: str
    age: int
    skills: list[str]


character = tf.generate("Evelyn is 34 years old; her skills are archery and stealth.", schema=Character).value
print(character)

assert isinstance(character, Character) and character.age == 34
