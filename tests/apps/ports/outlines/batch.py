"""Three prompts at once.

Source: Outlines, page "Transformers", Batching: 13 lines."""

import tokenform as tf

prompts = ["Vilnius is in Lithuania.", "Riga is in Latvia.", "Tallinn is in Estonia."]
results = tf.generate(prompts, regex="Vilnius|Riga|Tallinn")
print([result.text for result in results])

assert len(results) == 3 and {result.text for result in results} <= {"Vilnius", "Riga", "Tallinn"}
