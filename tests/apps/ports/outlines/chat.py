"""A chat with a system message.

Source: Outlines, page "Transformers", Chat: 13 lines."""

import tokenform as tf

messages = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "The capital of Latvia is Riga."},
]
result = tf.generate(
    messages, schema={"properties": {"capital": {"type": "string"}}, "required": ["capital"]}
)
print(result.text)

assert result.text
