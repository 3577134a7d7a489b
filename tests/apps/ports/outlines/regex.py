"""A text of a pattern, drawn with top-p.

Source: Outlines, page "Transformers", Regex: 10 lines."""

import tokenform as tf

result = tf.generate("A fake number.", regex=r"\d{3}-\d{2}-\d{4}", temperature=1.0, top_p=0.5, seed=0)
print(result.text)

assert result.text[3] == result.text[6] == "-"
