"""A stream of growing values, from a stream of text."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Generic

from tokenform.decoding.results import Result, T
from tokenform.frontends.partial_value import MISSING, Fields, partial_value


class Partials(Generic[T]):
    """The values of a text while it is written; see `Generator.stream`.

    Iterating gives the value after each piece: complete fields, growing strings, lists and objects.  Fields
    of a model that are not written yet are None, and not in its `model_fields_set`.  Each value is a new
    object; complete parts of it are shared with the later ones.

    Attributes:
        result: the text's, once the stream has ended; its value is the last one.
    """

    def __init__(
        self, pieces: Generator[str, None, Result], grammar: Any, on_field: Mapping[str, Any] | None = None
    ) -> None:
        self._pieces, self._fields = pieces, Fields(on_field)
        self._reader = partial_value(grammar, self._fields.tell)
        self.result: Result[T] | None = None

    def __repr__(self) -> str:
        return f"<Partials, {'to be read' if self.result is None else f'ended: {self.result!r}'}>"

    def on_field(self, pointer: str, function: Callable[[Any], Any]) -> Partials[T]:
        """Calls a function with the value of a field as soon as it is complete.

        Args:
            pointer: a JSON Pointer, as `/items/0/price`; `*` stands for any one key or number.
        """
        self._fields.add(pointer, function)
        return self

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        while self.result is None:
            try:
                self._reader.feed(next(self._pieces))
            except StopIteration as ended:
                self._reader.finish()
                self.result = ended.value
                if self.result is None:  # it was closed
                    raise
                last: T = self._reader.last(self.result.value)
                self.result.value = last
                return last
            value = self._reader.value()
            if value is not MISSING:
                return value  # type: ignore[no-any-return]
        raise StopIteration

    def close(self) -> None:
        """Cancels the text, and frees its memory."""
        self._pieces.close()

    def __enter__(self) -> Partials[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
