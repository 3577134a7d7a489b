"""A typed dictionary with fields that may be missing, while it is written.

Source: pydantic-ai, page "Output", streamed_user_profile: 19 lines with the two that the page says to add."""

import asyncio
from datetime import date

from typing_extensions import NotRequired, TypedDict

import tokenform as tf


class Profile(TypedDict):
    name: str
    dob: NotRequired[date]


async def main():
    async with tf.AsyncGenerator() as generator:
        async for profile in generator.stream("My name is Ben, born 1990-01-28.", Profile, partial=True):
            print(profile)
    return profile


assert isinstance(asyncio.run(main())["name"], str)
