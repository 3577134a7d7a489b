"""Free text of at most 20 tokens.

Source: Outlines, page "Transformers", Text Generation: 8 lines."""

import tokenform as tf

result = tf.generate("What's the capital of Latvia?", max_tokens=20)
print(result.text)

assert len(result.tokens) <= 20
