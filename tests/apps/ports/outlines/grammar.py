"""A sum of a grammar in Lark's language.

Source: Outlines, page "Transformers", Context-Free Grammar: 25 lines."""

import tokenform as tf

arithmetic = """
?start: sum
?sum: product | sum "+" product -> add | sum "-" product -> sub
?product: atom | product "*" atom -> mul | product "/" atom -> div
?atom: NUMBER -> number | "-" atom -> neg | "(" sum ")"
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""
result = tf.generate("23 + 48", schema=tf.lark(arithmetic), max_tokens=40)
print(result.text)

assert set(result.text) <= set("0123456789+-*/(). \teE")
