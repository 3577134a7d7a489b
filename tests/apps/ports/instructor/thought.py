"""A field to think in first, left out of what is passed on.

Source: instructor, page "Fields", Exclude: 17 lines, no call among them."""

from datetime import date

from pydantic import BaseModel, Field

import tokenform as tf


class Span(BaseModel):
    thought: str = Field(exclude=True, max_length=60)
    start: date
    end: date


span = tf.generate("The start is 2021-01-01 and the end is 2021-01-30.", schema=Span).value
print(span.model_dump_json())

assert span.start <= date(9999, 12, 31) and "thought" not in span.model_dump()
