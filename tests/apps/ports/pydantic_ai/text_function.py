"""Plain text, given to a function.

Source: pydantic-ai, page "Output", text_output_function: 9 lines."""

import tokenform as tf


def split_into_words(text: str) -> list[str]:
    return text.split()


print(words := split_into_words(tf.generate("Who was Albert Einstein?", max_tokens=20).text))

assert isinstance(words, list)
