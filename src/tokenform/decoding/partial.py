"""Streams of one text, and of its growing value."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Generic

from typing_extensions import Self, TypeVar

from tokenform.decoding.results import Result, T
from tokenform.frontends.partial_value import MISSING, Fields, partial_value

Part = TypeVar("Part")


class Stream(Generic[Part, T]):
    """What comes while a text is written: a base class.

    Attributes:
        result: the text's, once the stream has ended.
    """

    def __init__(self, pieces: Generator[str, None, Result]) -> None:
        self._pieces = pieces
        self.result: Result[T] | None = None

    def __repr__(self) -> str:
        state = "to be read" if self.result is None else f"ended: {self.result!r}"
        return f"<{type(self).__name__}, {state}>"

    def __iter__(self) -> Iterator[Part]:
        return self

    def __next__(self) -> Part:
        raise NotImplementedError

    def close(self) -> None:
        """Cancels the text, and frees its memory."""
        self._pieces.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TextStream(Stream[str, T]):
    """A text while it is written, in pieces; see `Generator.stream`.  With `yield from` its value is the
    result."""

    def __next__(self) -> str:
        try:
            return next(self._pieces)
        except StopIteration as ended:
            self.result = self.result or ended.value
            raise StopIteration(self.result) from None


class Partials(Stream[T, T]):
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
        super().__init__(pieces)
        self._fields = Fields(on_field)
        self._reader = partial_value(grammar, self._fields.tell)

    def on_field(self, pointer: str, function: Callable[[Any], Any]) -> Partials[T]:
        """Calls a function with the value of a field as soon as it is complete.

        Args:
            pointer: a JSON Pointer, as `/items/0/price`; `*` stands for any one key or number.
        """
        self._fields.add(pointer, function)
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
