"""The model's confidence in one field of a document: its place, and the probability of its tokens.

Invariant: the tokens of a field are exactly those with a character of its value; forced tokens count with the
model's own probability, as in `Result.logprob`.
Complexity: one pass over the text for each call, however many fields it reads.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tokenform.errors import InvalidSchema, OptionError
from tokenform.frontends.json_pointer import pointer_of
from tokenform.frontends.json_reader import JsonReader

if TYPE_CHECKING:
    from tokenform.decoding.alternatives import Alternative
    from tokenform.decoding.results import Result


@dataclass(frozen=True)
class Field:
    """One value of a document that a model wrote.

    Attributes:
        pointer: its place, a JSON Pointer.
        value: as JSON has it.
        text: as it is written, quotes and escapes included.
        start, end: its characters, `result.text[start:end]`.
        tokens: its tokens, places in `result.tokens`; the first and last may have other characters, too.
            Empty for weighted samplers, which don't record the tokens' probabilities.
        logprob: natural logarithm of the probability of these tokens under the model's own distribution, each
            after the text before it; None for weighted samplers.
    """

    pointer: str
    value: Any
    text: str
    start: int
    end: int
    tokens: range
    logprob: float | None
    _result: Result[Any] = field(repr=False, compare=False)

    @property
    def probability(self) -> float | None:
        """e to the power of `logprob`."""
        return None if self.logprob is None else math.exp(self.logprob)

    @property
    def probabilities(self) -> dict[Any, float]:
        """`Result.probabilities` of this field's value, after the text before it.

        It costs no pass where the field was decided as a whole.  A value counts as the tokenizer writes it;
        `alternatives` counts all ways to cut it.

        Raises:
            OptionError: the field is not one of few values; or a weighted sampler drew the text.
            ModelError: a pass is needed, and the generator is gone.

        >>> import tokenform as tf
        >>> schema = {"properties": {"color": {"enum": ["red", "blue"]}}, "required": ["color"]}
        >>> result = tf.generate("The parcel is red.", schema=schema)
        >>> list(result.field("/color").probabilities)
        ['red', 'blue']
        """
        from tokenform.decoding.alternatives import probabilities

        return probabilities(self._result, self.tokens, len(self._result.text[: self.start].encode()))

    def alternatives(self) -> list[Alternative]:
        """Every value that the constraint allowed here, with its probability, likeliest first; one pass.

        The probability is that of the value as a whole under the model's own distribution, after the tokens
        before this field and given that one of these values follows.

        Raises:
            OptionError: more than 256 values were possible; or a weighted sampler drew the text.
            ModelError: the generator is gone.

        >>> import tokenform as tf
        >>> result = tf.generate("The parcel is red.", choices=["red", "blue"])
        >>> [one.value for one in result.field("").alternatives()]
        ['red', 'blue']
        """
        result = self._result
        if result.origin is None or result.automaton is None or not self.tokens:
            raise OptionError("alternatives are those of a text that Local drew; this one keeps no tokens.")
        written = result.tokens[: self.tokens.start]
        vocabulary = result.automaton.vocabulary
        begun = sum(len(vocabulary.token(token)) for token in written)
        before = result.text[: self.start].encode()[begun:]
        json_text = result.value != result.text
        return result.origin.alternatives(result.automaton, written, before, json_text=json_text)


def result_field(result: Result[Any], pointer: str) -> Field:
    """The field at a JSON Pointer.

    Raises:
        OptionError: the text is no JSON document, or has nothing there.
    """
    if not pointer and result.value == result.text:  # the constraint is of texts, and this is one
        logprobs, text = result.token_logprobs, result.text
        logprob = math.fsum(logprobs) if logprobs else None
        return Field("", text, text, 0, len(text), range(len(result.tokens)), logprob, result)
    if pointer and not pointer.startswith("/"):
        raise OptionError(f"a JSON Pointer is empty or begins with '/': {'/' + pointer!r}?")
    found = result_fields(result, [pointer])
    if not found:
        raise OptionError(f"the document has nothing at {pointer!r}.")
    return found[pointer]


def result_fields(result: Result[Any], pointers: Collection[str] | None = None) -> dict[str, Field]:
    """The fields of a document, by JSON Pointer.

    Args:
        pointers: which; those that the document does not have are left out.  None: all that are no
            containers.
    Raises:
        OptionError: the text is no JSON document.
    """
    try:
        values = json_values(result.text)
    except InvalidSchema as error:
        raise OptionError(f"the text is no JSON document, so it has no fields: {error}") from None
    places = _Places(result)
    fields = {}  # of a key that comes twice the last value counts
    for path, value, start, end in values:
        pointer = pointer_of(path)
        if isinstance(value, dict | list) if pointers is None else pointer not in pointers:
            continue
        tokens = places.tokens(start, end)
        logprobs = result.token_logprobs[tokens.start : tokens.stop]
        logprob = math.fsum(logprobs) if logprobs else None
        fields[pointer] = Field(pointer, value, result.text[start:end], start, end, tokens, logprob, result)
    return fields


def json_values(text: str) -> list[tuple[tuple[str | int, ...], Any, int, int]]:
    """(path, value, first character, the one after the last) of every value of a document, inner ones first.

    Raises:
        InvalidSchema: it is none.
    """
    values: list[tuple[tuple[str | int, ...], Any, int, int]] = []
    reader = JsonReader(on_value=lambda *value: values.append(value))
    reader.feed(text)
    reader.finish()
    return values


class _Places:
    """Where the tokens and the characters of a text stand among its bytes."""

    def __init__(self, result: Result[Any]) -> None:
        self._ends: list[int] = []
        if result.automaton is not None:
            vocabulary = result.automaton.vocabulary
            self._ends = list(accumulate(len(vocabulary.token(token)) for token in result.tokens))
        self._bytes = [0, *accumulate(len(sign.encode("utf-8", "replace")) for sign in result.text)]

    def tokens(self, start: int, end: int) -> range:
        """The tokens with a byte of these characters; none where the vocabulary is not known."""
        ends, first, last = self._ends, self._bytes[start], self._bytes[end]
        return range(bisect_right(ends, first), min(bisect_left(ends, last) + 1, len(ends)))
