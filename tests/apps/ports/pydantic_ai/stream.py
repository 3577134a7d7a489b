"""Text as it is written, in an event loop.

Source: pydantic-ai, page "Output", streamed_hello_world: 8 lines with the two that the page says to add."""

import asyncio

import tokenform as tf


async def main():
    async with tf.AsyncGenerator() as generator:
        async for piece in generator.stream("Where does hello world come from?", max_tokens=20):
            print(piece)


asyncio.run(main())
