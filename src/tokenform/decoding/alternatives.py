"""The alternatives of a field: the probability of every value that the constraint allowed, in one pass.

Purpose: `Field.alternatives`.
Distribution: the probability of each value under the model's own distribution, after the tokens before the
field and given that one of the values follows; all ways to cut a value into tokens count, written without
needless escapes.
Invariant: values that begin alike are weighed as wholes, never by their first tokens.
Complexity: values are found by their bytes, each beginning once; one forward pass scores all ways of cutting
them (at most `PATHS`), shared prefixes once.  Where there are more ways, each value counts only as the
model's tokenizer writes it.
Rejected: the masked distribution (tokens that no value has would give their probability to whatever value
is left, however unlikely it is as a whole).
"""

from __future__ import annotations

import json
import math
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tokenform.decoding.speculative.drafters.spelling import Spelling
from tokenform.decoding.speculative.places import Places
from tokenform.decoding.speculative.tree import ROOT
from tokenform.decoding.speculative.values import ValueChoices
from tokenform.engine import State, TokenAutomaton
from tokenform.errors import InvalidSchema, ModelError, OptionError
from tokenform.frontends.json_reader import JsonReader

if TYPE_CHECKING:
    from tokenform.decoding.generator import Generator
    from tokenform.decoding.results import Result

_Name = TypeVar("_Name")
VALUES, BEGINNINGS, PATHS = 256, 4096, 1024
_NEEDLESS = re.compile(rb"\\(/|u(?!00[01]|00?$|$))")


class Origin:
    """The generator and prompt of a result, for later questions about it.  It does not keep the model alive,
    and is not pickled.

    Args:
        generator: wrote the result.
        prompt: the ids that the model read.
    """

    def __init__(self, generator: Generator, prompt: Sequence[int]) -> None:
        self._generator, self._prompt = weakref.ref(generator), tuple(prompt)

    def alternatives(
        self, automaton: TokenAutomaton, written: Sequence[int], before: bytes, *, json_text: bool = True
    ) -> list[Alternative]:
        """The possible values after these tokens and, in the next token, these bytes.

        Args:
            json_text: the values are JSON's; else the whole text is the value.
        Raises:
            ModelError: the generator is gone.
        """
        generator = self._writer()
        values = Values(automaton, _after(automaton, written), before, json_text)
        paths = values.paths() or values.spelled(generator.spell)
        rows = generator.language_model().logprobs([(*self._prompt, *written, *path) for path, _ in paths])
        following = {path: row for (path, _), row in zip(paths, rows, strict=True)}
        reached: dict[tuple[int, ...], float] = {(): 0.0}
        for path, _ in paths[1:]:
            reached[path] = reached[path[:-1]] + float(following[path[:-1]][path[-1]])
        parts: dict[str, list[float]] = {name: [] for name in values.values}
        for path, text in paths:
            for token, name in values.beginnings[text].ends.items():
                parts[name].append(reached[path] + float(following[path][token]))
        return [Alternative(values.values[name], share) for name, share in _shares(parts)]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def weighed(
        self, automaton: TokenAutomaton, written: Sequence[int], tokens: range
    ) -> tuple[int, dict[bytes, float]]:
        """The first of these places of a text at which few values are possible, and the log-probability of
        each, by one pass.

        Raises:
            ModelError: the generator is gone.
            OptionError: there is none.
        """
        generator, vocabulary = self._writer(), automaton.vocabulary
        spelling = Spelling(vocabulary.tokens, generator.spell, vocabulary.special)
        state = _after(automaton, written[: tokens.start])
        for place in tokens:
            choices = Places().at(automaton, state, spelling, frozenset(vocabulary.eos))
            if isinstance(choices, ValueChoices):
                break
            state = automaton.advance(state, written[place])
        else:
            raise OptionError(
                "the constraint leaves many values here, or one; probabilities are for enums and the like."
            )
        nodes = [node for node in range(ROOT, len(choices.tree)) if choices.state(node) is not None]
        before = self._prompt + tuple(written[:place])
        paths = [tuple(choices.tree.path(node)) if node != ROOT else () for node in nodes]
        rows = generator.language_model().logprobs([before + path for path in paths])
        return place, choices.weighed(dict(zip(nodes, rows, strict=True)))

    def _writer(self) -> Generator:
        generator = self._generator()
        if generator is None:
            raise ModelError(
                "the generator that wrote this is gone; hold it for as long as you ask about it."
            )
        return generator


def probabilities(result: Result[Any], tokens: range, start: int) -> dict[Any, float]:
    """The probability of each possible value at a place of a text, likeliest first; JSON values, or texts
    where the constraint is of texts.

    Args:
        tokens: those with a part of the value, places in `result.tokens`.
        start: the byte at which the value begins.
    """
    if result.origin is None or result.automaton is None:
        raise OptionError("probabilities are those of a text that Local drew; this one keeps no tokens.")
    vocabulary, data = result.automaton.vocabulary, result.text.encode()
    place, scores = next(
        ((one.place, one.logprobs) for one in result.decided if one.place in tokens), (-1, None)
    )
    if scores is None:
        place, scores = result.origin.weighed(result.automaton, result.tokens, tokens)
    begun = sum(len(vocabulary.token(token)) for token in result.tokens[:place])
    opening = data[start:begun]  # a quote in the token before
    shares: dict[Any, float] = {}
    for text, share in _shares({text: [score] for text, score in scores.items()}):
        value: Any = (opening + text).decode()
        if result.value != result.text:
            value = json.loads(value)
        shares[value] = shares.get(value, 0.0) + share
    return shares


class Alternative(NamedTuple):
    """A possible value of a field, and its probability."""

    value: Any
    probability: float


class Beginning:
    """A beginning of the values, as bytes.

    Attributes:
        state: the automaton's after it.
        onward: tokens that go on, and the beginning after each.
        ends: tokens that complete a value, and its name.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.onward: dict[int, bytes] = {}
        self.ends: dict[int, str] = {}


class Values:
    """The possible values at one place of a text.

    Args:
        automaton: the constraint.
        state: its state before the first token with a part of the value.
        before: the bytes of these tokens before the value.
        json_text: they are JSON values; else each is a whole text.
    Raises:
        OptionError: they are too many.
    """

    def __init__(
        self, automaton: TokenAutomaton, state: State, before: bytes, json_text: bool = True
    ) -> None:
        self._automaton, self._before, self._json = automaton, before, json_text
        self._tokens = automaton.vocabulary.tokens
        self._eos = frozenset(automaton.vocabulary.eos)
        self.values: dict[str, Any] = {}
        self.beginnings = {b"": Beginning(state)}
        todo = [b""]
        while todo:
            todo += self._extend(todo.pop())
            if len(self.beginnings) > BEGINNINGS or len(self.values) > VALUES:
                raise OptionError(
                    f"the constraint leaves more than {VALUES} values here, or long ones; alternatives are "
                    "for enums and the like."
                )
        for text in sorted(self.beginnings, key=len, reverse=True):  # what leads nowhere
            one = self.beginnings[text]
            one.onward = {token: after for token, after in one.onward.items() if after in self.beginnings}
            if text and not one.onward and not one.ends:
                del self.beginnings[text]

    def _extend(self, text: bytes) -> list[bytes]:
        """Tries the tokens after a beginning; returns the new beginnings."""
        here, new = self.beginnings[text], []
        allowed = self._automaton.allowed_tokens(here.state).tolist()
        if len(allowed) > BEGINNINGS:  # free text
            raise OptionError("the constraint leaves any text here; alternatives are for enums and the like.")
        for token in allowed:
            after = text + (b"" if token in self._eos else self._tokens[token])
            common = min(len(after), len(self._before))
            if after[:common] != self._before[:common]:
                continue
            value_text = after[len(self._before) :]
            if self._json and _odd(value_text):
                continue
            done, value = (_read if self._json else _whole)(value_text, token in self._eos)
            if done:
                name = json.dumps(value, sort_keys=True)
                self.values[name] = value
                here.ends[token] = name
            elif token not in self._eos:
                here.onward[token] = after
                if after not in self.beginnings:
                    self.beginnings[after] = Beginning(self._automaton.advance(here.state, token))
                    new.append(after)
        return new

    def paths(self) -> list[tuple[tuple[int, ...], bytes]] | None:
        """Every way to a beginning, in tokens; None for more than `PATHS`."""
        found: list[tuple[tuple[int, ...], bytes]] = [((), b"")]
        for path, text in found:
            found += [((*path, token), after) for token, after in self.beginnings[text].onward.items()]
            if len(found) > PATHS:
                return None
        return found

    def spelled(self, encode: Callable[[bytes], list[int]]) -> list[tuple[tuple[int, ...], bytes]]:
        """The tokenizer's path to the last beginning of each value, and the beginnings on it."""
        found: dict[tuple[int, ...], bytes] = {(): b""}
        for text, one in self.beginnings.items():
            if not one.ends:
                continue
            path: tuple[int, ...] = ()
            for token in encode(text):
                next_beginning = self.beginnings[found[path]].onward.get(token)
                if next_beginning is None:
                    break
                path = (*path, token)
                found[path] = next_beginning
        return list(found.items())


def _shares(parts: Mapping[_Name, Sequence[float]]) -> list[tuple[_Name, float]]:
    """Each name's share of all weights, from their logarithms; the largest first."""
    top = max((one for several in parts.values() for one in several), default=-math.inf)
    if top == -math.inf:
        raise OptionError("the model gives none of the values a probability.")
    weights = {name: math.fsum(math.exp(one - top) for one in several) for name, several in parts.items()}
    total = math.fsum(weights.values())
    return sorted(((name, weight / total) for name, weight in weights.items()), key=lambda one: -one[1])


def _after(automaton: TokenAutomaton, tokens: Sequence[int]) -> State:
    state = automaton.start
    for token in tokens:
        state = automaton.advance(state, token)
    return state


def _odd(data: bytes) -> bool:
    """Whether a value begins with space or holds escapes that it does not need."""
    return data[:1].isspace() or _NEEDLESS.search(data.replace(rb"\\", b"")) is not None


def _whole(data: bytes, ended: bool) -> tuple[bool, Any]:
    """The text itself, where it has ended."""
    return ended, data.decode("utf-8", errors="replace") if ended else None


def _read(data: bytes, ended: bool) -> tuple[bool, Any]:
    """Whether a value has ended in these bytes, and which."""
    found: list[Any] = []

    def on_value(path: tuple[str | int, ...], value: Any, start: int, end: int) -> None:
        if len(path) == 1:
            found.append(value)

    reader = JsonReader(on_value=on_value)
    try:
        reader.feed("[" + data.decode("utf-8", errors="ignore"))
        if ended:
            reader.finish()
    except InvalidSchema:  # text after the value
        pass
    return bool(found), found[0] if found else None
