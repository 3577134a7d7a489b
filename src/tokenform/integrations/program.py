"""Programs: text and generation in turns, values by name, on one cache.

Purpose: branches, loops and calls between two generations are plain Python.
Invariant: a `Program` never changes: `+` gives another one, so that two branches start from the same text.
The text of a generation depends on the text before it, the seed and its number, not on other branches.
Law: that of `generate` with the text as a raw prompt: values are decided whole, numbers end.
Complexity: shared beginnings of texts are in the prompt cache once, so the model runs only new text.
Source: the form is that of guidance (Microsoft, 2022), where `+` appends and names are read back.
Rejected: a template language (Python has branches and loops); masking token by token (a number of any length
gets longer to the end of its budget).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tokenform.errors import ModelError, OptionError, extras
from tokenform.frontends import Condition, Grammar, choice, one_constraint, to_constraint
from tokenform.frontends.captures import Capture

with extras():
    from tokenform.decoding.aligned.beam import Beam
    from tokenform.decoding.aligned.masked import Masked
    from tokenform.decoding.calls import DEFAULT_MAX_TOKENS, ending_at, texts_of
    from tokenform.decoding.keyed_random import keyed
    from tokenform.decoding.options import Call
    from tokenform.decoding.samplers import Local
    from tokenform.engine import tokenizers
    from tokenform.integrations.generation import Generator, named


@dataclass(frozen=True)
class Gen:
    """A text that the model is to write; made by `gen` and `select`."""

    name: str | None
    constraint: Any
    stop: tuple[str, ...]
    max_tokens: int
    temperature: float | None
    append: bool

    def __radd__(self, before: str) -> tuple[str, Gen]:
        return before, self

    def __add__(self, after: Any) -> tuple[Any, ...]:
        return self, after


def gen(
    name: str | None = None,
    *,
    schema: Any = None,
    regex: str | None = None,
    choices: Sequence[str] | None = None,
    grammar: Any = None,
    type: Any = None,
    stop: str | Sequence[str] = (),
    max_tokens: int = DEFAULT_MAX_TOKENS,
    temperature: float | None = None,
    append: bool = False,
) -> Gen:
    """A text for the model to write in a `Program`.

    Args:
        name: of its value in the program; None: it is only written.
        schema, regex, choices: its constraint, as for `tf.generate`; without one, any text.
        grammar, type: old names of `schema`.
        stop: texts before which it ends, where it is complete.
        max_tokens: most tokens; it ends within them.
        temperature: in place of the program's.
        append: append the value to the name's list.
    """
    constraint = one_constraint(schema, choices=choices, regex=regex, grammar=grammar, type=type)
    stops = tuple(texts_of(stop))
    return Gen(name, to_constraint(ending_at(stops, constraint)), stops, max_tokens, temperature, append)


def select(options: Sequence[str], name: str | None = None, *, append: bool = False) -> Gen:
    """One of these texts, chosen by the model; as `gen(name, choices=options)`."""
    return Gen(name, choice(options), (), DEFAULT_MAX_TOKENS, None, append)


Piece = Any
"""A text, a `Gen`, a grammar, a function from a program to a program, or a tuple of these."""


@dataclass(frozen=True)
class Program:
    """A text that grows by `+`, with your text or the model's.

    Args:
        model: None for the built-in model, a path or hub name, or a `Generator`.
        seed: key of all draws.
        temperature: the default of generations; 0 is greedy.

    `+` takes a text, `gen(...)`, `select(...)`, a grammar (whose captures are values then), or a function
    that gets the program and returns one.  `program["name"]` is a value, `program.text` all of the text.

    >>> import tokenform as tf
    >>> order = tf.Program() + "The order has been paid. Status: " + tf.select(["new", "paid"], "status")
    >>> order["status"], order.text
    ('paid', 'The order has been paid. Status: paid')
    """

    model: Any = None
    seed: int = 0
    temperature: float = 0.0
    text: str = ""
    turns: tuple[tuple[str, str], ...] = ()
    captures: Mapping[str, Any] = None  # type: ignore[assignment]  # an empty mapping, made below
    generated: int = 0
    tokens: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "captures", dict(self.captures or {}))

    def __add__(self, piece: Piece) -> Program:
        if isinstance(piece, str):
            return replace(self, text=self.text + piece)
        if isinstance(piece, Gen):
            return self._write(piece)
        if isinstance(piece, Grammar | Condition):
            return self._write(gen(schema=piece))
        if isinstance(piece, tuple):
            done = self
            for part in piece:
                done = done + part
            return done
        if isinstance(piece, ChatTurn):
            return replace(self, turns=(*self._turns_so_far(), (piece.role, piece.content)), text="")
        if callable(piece):
            program = piece(self)
            if not isinstance(program, Program):
                raise OptionError(f"a step of a program returns a Program, not {type(program).__name__}.")
            return program
        raise OptionError(_unreadable(piece))

    def __getitem__(self, name: str) -> Any:
        """The value of a name, or the list of its values.

        Raises:
            OptionError: nothing has that name.
        """
        if name not in self.captures:
            known = ", ".join(self.captures) or "none"
            raise OptionError(f"the program has no value {name!r}; it has {known}.")
        found = self.captures[name]
        return [one.value for one in found] if isinstance(found, list) else found.value

    def __contains__(self, name: str) -> bool:
        return name in self.captures

    def __str__(self) -> str:
        return self.text

    def set(self, name: str, value: Any) -> Program:
        """The program with a value of your own under a name."""
        at = len(self.text)
        return replace(self, captures={**self.captures, name: Capture(str(value), value, (at, at))})

    def _turns_so_far(self) -> tuple[tuple[str, str], ...]:
        """The turns so far, the model's unfinished one included."""
        return (*self.turns, ("assistant", self.text)) if self.turns and self.text else self.turns

    def _write(self, request: Gen) -> Program:
        """Writes the next text, with its values."""
        writer = _writer(self.model)
        grammar = request.constraint
        temperature = self.temperature if request.temperature is None else request.temperature
        prompt, seed = self._prompt(writer, grammar), keyed(self.seed, self.generated)
        if isinstance(prompt, str) and not writer.own_format:  # the model goes on with the text
            (prompt,) = writer.framed([prompt], True, None, None)
        sampler = _sampler(grammar, temperature)
        options = {"max_tokens": request.max_tokens, "sampler": sampler, "thinking": False}
        keywords = {**options, "seed": self.seed, "temperature": temperature, "name": request.name}
        call = replace(Call.of(grammar, {**options, "seed": seed, "stop": request.stop}), keywords=keywords)
        result = writer.write(prompt, call)
        text, value, start = result.text, result.value, len(self.text)
        captures = grammar.captures(text) if isinstance(grammar, Grammar) else {}
        values = {**self.captures}
        for name, one in captures.items():
            values[name] = [each.moved(start) for each in one] if isinstance(one, list) else one.moved(start)
        if request.name is not None:
            capture = Capture(text, value, (start, start + len(text)))
            previous = values.get(request.name, [])
            values[request.name] = (
                [*(previous if isinstance(previous, list) else [previous]), capture]
                if request.append
                else capture
            )
        return replace(
            self,
            text=self.text + text,
            captures=values,
            generated=self.generated + 1,
            tokens=self.tokens + len(result.tokens),
        )

    def _prompt(self, writer: Generator, grammar: Any) -> Any:
        """What the model reads: the text; or the chat with the model's unfinished turn."""
        if not self.turns:
            return self.text.strip() if self.model is None else self.text  # its own format ends the text
        messages = [{"role": role, "content": content} for role, content in self.turns]
        ids = writer.prompt_ids(messages, grammar, thinking=False)
        if not self.text:
            return ids
        return [*ids, *tokenizers.encode(writer.tokenizer, self.text, specials=False)]


@dataclass(frozen=True)
class ChatTurn:
    """A message of a chat; made by `said`."""

    role: str
    content: str


def said(role: str, content: str) -> ChatTurn:
    """A message of a chat, `said("user", "Where is Lisbon?")`; the program's next generation answers it, in
    the model's own chat template.

    Raises:
        OptionError: the content is not text.
    """
    if not isinstance(content, str):
        raise OptionError(_unreadable(content))
    return ChatTurn(role, content)


def _unreadable(piece: Any) -> str:
    return (
        f"{type(piece).__name__} can't be added to a program: give text, gen(...), select(...), a grammar or "
        "a function.  Images can't be read here; use the model's processor and its own generate with "
        "GrammarLogitsProcessor."
    )


def _sampler(grammar: Any, temperature: float) -> Any:
    """As `generate` draws; a condition has no masks: it is drawn by a search, or by masking and weights."""
    if isinstance(grammar, Grammar):
        return Local(temperature)
    return Beam(1) if temperature == 0.0 else Masked(temperature=temperature)


def _writer(model: Any) -> Generator:
    """The generator, shared by all programs of the model."""
    if model is not None and not isinstance(model, str | Generator):
        raise ModelError(f"a program runs None, a model's name or a Generator, not {type(model).__name__}.")
    return model if isinstance(model, Generator) else named(model)
