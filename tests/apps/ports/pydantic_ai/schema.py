"""A JSON Schema that comes from elsewhere; here it is enforced.

Source: pydantic-ai, page "Output", Custom JSON schema: 15 lines."""

import tokenform as tf

human = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
person = tf.generate("John Doe is 30 years old.", schema=human).value

assert person["age"] == 30
