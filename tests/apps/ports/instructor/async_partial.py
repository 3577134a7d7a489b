"""The same in an event loop.

Source: instructor, page "Partial", Asynchronous Streaming: 22 lines."""

import asyncio

from pydantic import BaseModel

import tokenform as tf


class User(BaseModel):
    name: str
    age: int


async def main():
    async with tf.AsyncGenerator() as generator:
        async for user in generator.stream("Jason Brown is 12 years old.", User, partial=True):
            print(user)
    return user


assert asyncio.run(main()).age == 12
