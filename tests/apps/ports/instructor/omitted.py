"""A field that the model may not write.

Source: instructor, page "Fields", Omitting fields: 8 lines, no call among them."""

from pydantic import BaseModel
from pydantic.json_schema import SkipJsonSchema

import tokenform as tf


class Response(BaseModel):
    answer: str
    private_field: SkipJsonSchema[str | None] = None


response = tf.generate("The answer is Lisbon.", schema=Response)

assert response.value.private_field is None and "private" not in response.text
