"""`tokenform tools`: a model calls tools, or its calls are read."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from tokenform import errors
from tokenform.cli import options
from tokenform.cli.constraints import read_file, read_text
from tokenform.cli.reporting import cut_note, reported
from tokenform.engine import Grammar
from tokenform.frontends.byte_vocabulary import byte_vocabulary
from tokenform.frontends.schemas import SPELLINGS


def tools(
    prompt: Annotated[
        str | None, typer.Argument(help="The prompt; standard input where it is left out.")
    ] = None,
    definitions: Annotated[
        str | None, typer.Option("--tools", "-t", help="A JSON file: the list of the tools' definitions.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option("--format", "-f", help="The format of the calls; default: told from the model."),
    ] = None,
    tool_choice: Annotated[
        str | None,
        typer.Option(help="auto, required, none, or a tool's name; default: required, with --read auto."),
    ] = None,
    parallel: Annotated[int | None, typer.Option(min=1, help="Most calls; default: any number.")] = None,
    read: Annotated[
        str | None,
        typer.Option(help="Write nothing: read a model's output from this file, or - for standard input."),
    ] = None,
    model: options.Model = None,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    seed: Annotated[int | None, typer.Option()] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of a text; it is complete within them.")] = 512,
) -> None:
    """Let a model call tools, and print its calls as JSON, or its text where it calls none."""
    with reported():
        from tokenform.frontends.tools import detect_format
        from tokenform.frontends.tools import tools as grammar_of

        if definitions is None:
            raise errors.OptionError("no tools are given; pass --tools FILE, a JSON list of definitions.")
        if read is not None and prompt is not None:
            raise errors.OptionError("a prompt and --read are given; pass one of them.")
        source = read_text(definitions, errors.ToolError)
        try:
            known = json.loads(source)
        except ValueError as error:
            raise errors.ToolError(f"{definitions} is not JSON: {error}") from None
        chosen = tool_choice or ("auto" if read is not None else "required")
        calling: dict[str, Any] = {"tool_choice": chosen, "parallel": parallel or True}
        if read is not None:
            spelling = dict.fromkeys(SPELLINGS, "any")
            grammar = grammar_of(known, format=format or "hermes", json_options=spelling, **calling)
            found = grammar.parse(accepted_text(grammar, read))
        else:
            from tokenform.decoding.options import Call
            from tokenform.integrations.generation import Generator

            drawing: dict[str, Any] = {"max_tokens": max_tokens, "seed": seed, "temperature": temperature}
            Call.of(None, drawing)  # what is wrong is said before the model is opened
            grammar = grammar_of(known, format=format or "hermes", **calling)
            writer = Generator(model)
            if format is None and model is not None:
                grammar = grammar_of(known, format=detect_format(writer.tokenizer), **calling)
            prompt_messages: Any = sys.stdin.read() if prompt is None else prompt
            if getattr(writer.tokenizer, "chat_template", None):
                prompt_messages = [{"role": "user", "content": prompt_messages}]
            result = writer.sample(prompt_messages, grammar, **drawing)[0]
            if result.reason == "length":
                typer.echo(f"tokenform: note: {cut_note(result)}", err=True)
            found = result.value
        calls = [{"name": call.name, "arguments": call.arguments} for call in found]
        typer.echo(json.dumps(calls, ensure_ascii=False) if calls else found.content or "")


def accepted_text(grammar: Grammar, file: str) -> str:
    """The text of a file, or of standard input for "-"; ends the command where the grammar refuses it."""
    data = (sys.stdin.buffer.read() if file == "-" else read_file(file)).rstrip(b"\r\n")
    verdict = grammar.compile(byte_vocabulary()).check(data)
    if verdict is None:
        return data.decode()
    typer.echo(f"refused at byte {verdict[0]}: expected {' or '.join(verdict[1]) or 'nothing more'}")
    raise typer.Exit(1)
