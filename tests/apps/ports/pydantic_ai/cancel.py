"""A stream that is given up once there is enough.

Source: pydantic-ai, page "Output", stream_cancel_stream: 11 lines with the two that the page says to add."""

import asyncio

import tokenform as tf


async def main():
    async with tf.AsyncGenerator() as generator:
        text = ""
        async for piece in generator.stream("Write a long essay", tf.regex("[a-z ]{300}"), seed=0):
            text += piece
            if len(text) > 20:
                return text


assert len(asyncio.run(main())) < 300
