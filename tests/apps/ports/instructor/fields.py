"""Lengths, bounds and a pattern.

Source: instructor, page "Field-level validation", Basic Field Validation: 11 lines, no call among them."""

from pydantic import BaseModel, Field

import tokenform as tf


class User(BaseModel):
    name: str = Field(min_length=2)
    age: int = Field(ge=18, le=120)
    email: str = Field(pattern=r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$", max_length=40)


user = tf.generate("Ada Brown is 36 years old and has the address ada@mail.com.", schema=User).value

assert 18 <= user.age <= 120 and "@" in user.email
