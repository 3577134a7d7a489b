"""A list of members of a union, each as soon as it is complete.

Source: instructor, page "Iterable", Synchronous Usage: 22 lines."""

from typing import Literal

from pydantic import BaseModel

import tokenform as tf


class Weather(BaseModel):
    location: str
    units: Literal["imperial", "metric"]


class Search(BaseModel):
    query: str


prompt = "The location is Toronto and the units are metric; the query is Super Bowl."
told = []
stream = tf.Generator().stream(
    prompt, list[Weather | Search], partial=True, on_field={"/*": told.append}, max_tokens=90
)
items = list(stream)[-1]

assert told == items and all(isinstance(item, Weather | Search) for item in items)
