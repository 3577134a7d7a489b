"""Partial values without side effects, and one when the value is complete.

Source: pydantic-ai, page "Output", output_function_with_side_effects: 18 lines with the two that the page
says to add.
"""

import asyncio

from pydantic import BaseModel

import tokenform as tf


class Record(BaseModel):
    name: str
    value: int


async def main():
    async with tf.AsyncGenerator() as generator:
        stream = generator.stream("The name is test and the value is 42.", Record, partial=True)
        async for record in stream:
            print(record)
    print(f"Saving to database: {stream.result.value}")
    return stream.result.value


assert isinstance(asyncio.run(main()).value, int)
