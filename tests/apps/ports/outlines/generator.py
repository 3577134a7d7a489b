"""A generator that is kept, with a model for its answers.

Source: Outlines, page "Generator", Structured Generation: 16 lines."""

from pydantic import BaseModel

import tokenform as tf


class Book(BaseModel):
    title: str
    author: str
    year: int


generator = tf.Generator()
[result] = generator.sample("Solaris was written by Stanislaw Lem in 1961.", Book)
book = result.value
print(f"{book.title} by {book.author} ({book.year})")

assert book.year == 1961
