"""The same in an event loop.

Source: instructor, page "Iterable", Asynchronous Usage: 27 lines."""

import asyncio
from typing import Literal

from pydantic import BaseModel

import tokenform as tf


class Weather(BaseModel):
    location: str
    units: Literal["imperial", "metric"]


class Search(BaseModel):
    query: str


async def main():
    prompt = "The location is Toronto and the units are metric; the query is Super Bowl."
    async with tf.AsyncGenerator() as generator:
        stream = generator.stream(prompt, list[Weather | Search], partial=True, max_tokens=90)
        async for _ in stream.on_field("/*", print):
            pass
    return stream.result.value


assert all(isinstance(item, Weather | Search) for item in asyncio.run(main()))
