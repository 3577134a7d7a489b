"""Several objects out of one text.

Source: instructor, page "Iterable", create_iterable: 17 lines."""

from pydantic import BaseModel

import tokenform as tf


class User(BaseModel):
    name: str
    age: int


users = tf.generate(
    "Ivan is 28 years old, Alex is 25 years old and John is 30 years old.", schema=list[User]
).value
for user in users:
    print(user)

assert all(isinstance(user, User) for user in users)
