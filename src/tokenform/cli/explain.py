"""`tokenform explain`: the states along a text, and the sizes of their masks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from tokenform import _core
from tokenform.cli import options
from tokenform.cli.constraints import constraint, read_text, write_file
from tokenform.cli.reporting import reported
from tokenform.engine import State, TokenAutomaton
from tokenform.errors import OptionError
from tokenform.frontends.byte_vocabulary import byte_vocabulary


def explain(
    text: Annotated[
        str, typer.Argument(help="A text, or its beginning, to walk along; or a file of it.")
    ] = "",
    schema: options.Schema = None,
    pattern: options.Regex = None,
    choices: options.Choices = None,
    grammar_file: options.Grammar = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Tokens of this model; default: bytes.")
    ] = None,
    order: options.Order = "declared",
    whitespace: options.Whitespace = "natural",
    numbers: options.Numbers = "natural",
    strings: options.Strings = "natural",
    strict: options.Strict = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page with drawings of the automaton and its masks to this file."),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="Write a certificate of the masks to this file, for `tokenform verify`."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show the grammar, the states along a text, and the size of each state's mask."""
    with reported():
        spelling = {"order": order, "whitespace": whitespace, "numbers": numbers, "strings": strings}
        grammar = constraint(schema, pattern, choices, grammar_file, strict=strict, **spelling)
        vocabulary, tokens = tokens_of(text_of(text), model)
        automaton = grammar.compile(vocabulary)
        states = list(states_along(automaton, tokens))
        steps = steps_along(automaton, states, tokens)
        if html is not None:
            from tokenform.engine.drawing import explained_html

            write_file(html, explained_html(grammar, automaton, states, steps))
        if certificate is not None:
            from tokenform.engine import certify

            write_file(certificate, json.dumps(certify(grammar, vocabulary, tokens), separators=(",", ":")))
    stopped = len(steps) <= len(tokens)
    if as_json:
        typer.echo(
            json.dumps({"grammar": grammar.source, "report": grammar.report, "steps": steps}, default=str)
        )
    else:
        typer.echo(f"grammar   {grammar.source}")
        for line in grammar.report or ["exact: nothing ignored, nothing loosened"]:
            typer.echo(f"report    {line}")
        typer.echo(f"{'after':<24} {'state':>6} {'mask':>7} {'to end':>6}  end?  in")
        for step in steps:
            end = "yes" if step["accepting"] else "no"
            shown = "?" if step["distance"] is None else step["distance"]
            columns = f"{step['after']!r:<24} {step['state']!s:>6} {step['allowed']:>7} {shown:>6}"
            typer.echo(f"{columns}  {end:<4}  {step['place']}")
    if stopped:
        refused = vocabulary.tokens[tokens[len(steps) - 1]]
        typer.echo(f"refused: {refused.decode('utf-8', 'replace')!r} can't follow", err=True)
        raise typer.Exit(1)


def text_of(given: str) -> str:
    """The text of the file of this name, without its last line break, as for `check`; else what is given."""
    try:
        is_file = Path(given).is_file()
    except (OSError, ValueError):  # longer than names are, or with what they can't have
        return given
    return read_text(given, OptionError).rstrip("\r\n") if is_file else given


def tokens_of(text: str, model: str | None) -> tuple[_core.Vocabulary, list[int]]:
    """A vocabulary and the text in its tokens: those of a model, or bytes."""
    if model is None:
        return byte_vocabulary(), list(text.encode())
    from tokenform.engine import tokenizers
    from tokenform.integrations.generation import Generator

    writer = Generator(None if model == "builtin" else model)
    return writer.vocabulary, tokenizers.encode(writer.tokenizer, text, specials=False)


def states_along(automaton: TokenAutomaton, tokens: list[int]) -> Iterator[State]:
    """The states along the tokens, as far as they are allowed; the start is the first."""
    state = automaton.start
    yield state
    for token in tokens:
        if not automaton.allows(state, token):
            return
        state = automaton.advance(state, token)
        yield state


def steps_along(automaton: TokenAutomaton, states: list[State], tokens: list[int]) -> list[dict[str, Any]]:
    """What there is to say of each state; states are numbered in the order of the text."""
    numbers: dict[State, int] = {}
    return [
        {
            "after": automaton.vocabulary.tokens[before].decode("utf-8", "replace") if place else "",
            "state": numbers.setdefault(state, len(numbers)),
            "allowed": len(automaton.allowed_tokens(state)),
            "accepting": automaton.is_accepting(state),
            "distance": automaton.distance(state),
            "forced": automaton.forced_bytes(state).decode("utf-8", "replace"),
            "place": automaton.describe(state),
        }
        for place, (before, state) in enumerate(zip([0, *tokens], states))
    ]
