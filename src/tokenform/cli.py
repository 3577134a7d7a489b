"""The command `tokenform`: generate, check, explain, demo, evaluate.

Purpose: the library's main jobs from a shell.
Invariant: exit code 0: done, or accepted; 1: refused (the document, or a constraint that can't be met);
2: bad input or usage.  An error is one sentence on standard error; standard output holds results alone.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tokenform import __version__, errors
from tokenform.engine import Grammar, Vocabulary
from tokenform.frontends import choice, from_type, json_schema, regex
from tokenform.frontends.gbnf import gbnf
from tokenform.frontends.lark import lark
from tokenform.frontends.schemas import SPELLINGS

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Structured generation, exactly.")
evaluations = typer.Typer(no_args_is_help=True, help="Measure engines, models and samplers.")
app.add_typer(evaluations, name="evaluate")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tokenform {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Structured generation, exactly."""


_REFUSALS = (
    errors.UnsupportedSchema,
    errors.UnsatisfiableSchema,
    errors.UnsatisfiableGrammar,
    errors.UnsupportedRegex,
    errors.LimitExceeded,
    errors.BudgetTooSmall,
    errors.SamplingError,
)

SchemaOption = Annotated[
    str | None, typer.Option("--schema", "-s", help="A JSON Schema file, or a type as module:Name.")
]
RegexOption = Annotated[
    str | None, typer.Option("--regex", "-r", help="A pattern that the whole text matches.")
]
ChoicesOption = Annotated[
    list[str] | None, typer.Option("--choices", "-c", help="One of the texts; repeat it.")
]
GrammarOption = Annotated[
    str | None, typer.Option("--grammar", "-g", help="A grammar in Lark's language, or in GBNF (.gbnf).")
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", "-m", help="A Hugging Face model by path or name; default: built in."),
]
OrderOption = Annotated[str, typer.Option(help="Order of keys: declared or any.")]
WhitespaceOption = Annotated[str, typer.Option(help="natural, compact, spaced, indent or any.")]
NumbersOption = Annotated[str, typer.Option(help="Spelling of numbers: natural, canonical or any.")]
StringsOption = Annotated[str, typer.Option(help="Escapes in strings: any or canonical.")]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Refuse keys of a schema that look like a keyword and are none.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def generate(
    prompt: Annotated[
        str | None, typer.Argument(help="The prompt; standard input where it is left out.")
    ] = None,
    schema: SchemaOption = None,
    pattern: RegexOption = None,
    choices: ChoicesOption = None,
    grammar_file: GrammarOption = None,
    model: ModelOption = None,
    n: Annotated[int, typer.Option("-n", help="How many texts.")] = 1,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    top_p: Annotated[float, typer.Option()] = 1.0,
    seed: Annotated[int | None, typer.Option()] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of a text; texts are never cut.")] = 512,
    order: OrderOption = "declared",
    whitespace: WhitespaceOption = "natural",
    numbers: NumbersOption = "natural",
    strings: StringsOption = "any",
    strict: StrictOption = False,
    report: Annotated[
        Path | None,
        typer.Option(help="File for what speculation did: .json, .html, or a picture (.png, .svg, .pdf)."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write text that a schema, type, pattern or list of choices accepts."""
    with reported():
        spelling = {"order": order, "whitespace": whitespace, "numbers": numbers, "strings": strings}
        grammar = constraint(schema, pattern, choices, grammar_file, strict=strict, **spelling)
        tell(grammar)
        from tokenform.integrations.generation import generate as write

        options: dict[str, Any] = {
            "temperature": temperature,
            "top_p": top_p,
            "seed": seed,
            "max_tokens": max_tokens,
        }
        text = prompt if prompt is not None else sys.stdin.read()
        results = write([text], grammar=grammar, model=model, n=n, **options)[0]
        written = results if n > 1 else [results]
        for result in written:
            typer.echo(json.dumps(described(result), ensure_ascii=False) if as_json else result.text)
        if report is not None:
            from tokenform.decoding.speculative.plot import write_report
            from tokenform.decoding.speculative.report import Report

            total = Report()
            for result in written:
                total.add(result.report or Report(forwards=result.stats.forwards, tokens=result.stats.tokens))
            write_report(total, report)


@app.command()
def check(
    document: Annotated[str | None, typer.Argument(help="A file; standard input for - or none.")] = None,
    schema: SchemaOption = None,
    pattern: RegexOption = None,
    choices: ChoicesOption = None,
    grammar_file: GrammarOption = None,
    order: OrderOption = "any",
    whitespace: WhitespaceOption = "any",
    numbers: NumbersOption = "any",
    strings: StringsOption = "any",
    strict: StrictOption = False,
    as_json: JsonOption = False,
) -> None:
    """Say whether a document is accepted; if not, where it goes wrong and what was expected there."""
    with reported():
        spelling = {"whitespace": whitespace, "numbers": numbers, "strings": strings}
        grammar = constraint(schema, pattern, choices, grammar_file, order=order, strict=strict, **spelling)
        tell(grammar)
        piped = document in (None, "-")
        data = (sys.stdin.buffer.read() if piped else read_file(document)).rstrip(b"\r\n")
        verdict = grammar.compile(byte_vocabulary()).check(data)
        only_order = False
        if verdict is not None and schema is not None and order == "declared":
            unordered = constraint(schema, None, None, None, order="any", **spelling)
            only_order = unordered.compile(byte_vocabulary()).check(data) is None
    if verdict is None:
        typer.echo('{"accepted": true}' if as_json else "accepted")
        return
    offset, expected, pointer = verdict
    line, column = data.count(b"\n", 0, offset) + 1, offset - (data.rfind(b"\n", 0, offset) + 1) + 1
    if as_json:
        place = {"byte": offset, "line": line, "column": column, "expected": expected, "pointer": pointer}
        typer.echo(json.dumps({"accepted": False, "valid_in_another_order": only_order} | place))
    else:
        found = "the end" if offset >= len(data) else repr(data[offset : offset + 1].decode("latin-1"))
        where = "" if pointer is None else f" ({said_at(pointer)})"
        typer.echo(
            f"refused at byte {offset}, line {line}, column {column}: "
            f"found {found}, expected {' or '.join(expected) or 'nothing more'}{where}"
        )
        if only_order:
            typer.echo(
                "the document is valid: only its keys stand in another order than declared (--order any)"
            )
    raise typer.Exit(1)


@app.command()
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
    model: ModelOption = None,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    seed: Annotated[int | None, typer.Option()] = None,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of a text; texts are never cut.")] = 512,
) -> None:
    """Let a model call tools, and print its calls as JSON, or its text where it calls none."""
    with reported():
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
        options: dict[str, Any] = {"tool_choice": chosen, "parallel": parallel or True}
        if read is not None:
            spelling = dict.fromkeys(SPELLINGS, "any")
            grammar = grammar_of(known, format=format or "hermes", json_options=spelling, **options)
            text = accepted_text(grammar, read)
        else:
            from tokenform.decoding import Local
            from tokenform.integrations.generation import Generator

            writer = Generator(model)
            grammar = grammar_of(known, format=format or format_of(writer, model), **options)
            asked: Any = sys.stdin.read() if prompt is None else prompt
            if getattr(writer.tokenizer, "chat_template", None):
                asked = [{"role": "user", "content": asked}]
            sampler = Local(temperature=temperature)
            text = writer.sample(asked, grammar, max_tokens=max_tokens, seed=seed, sampler=sampler)[0].text
        found = grammar.parse(text)
        calls = [{"name": call.name, "arguments": call.arguments} for call in found]
        typer.echo(json.dumps(calls, ensure_ascii=False) if calls else found.content or "")


def format_of(writer: Any, model: str | None) -> str | Any:
    """The tool format of a model, told from its chat template; the built-in one's is hermes."""
    from tokenform.frontends.tools import detect_format

    return "hermes" if model is None else detect_format(writer.tokenizer)


def accepted_text(grammar: Grammar, file: str) -> str:
    """The text of a file, or of standard input for "-"; ends the command where the grammar refuses it."""
    data = (sys.stdin.buffer.read() if file == "-" else read_file(file)).rstrip(b"\r\n")
    verdict = grammar.compile(byte_vocabulary()).check(data)
    if verdict is None:
        return data.decode()
    typer.echo(f"refused at byte {verdict[0]}: expected {' or '.join(verdict[1]) or 'nothing more'}")
    raise typer.Exit(1)


@app.command()
def explain(
    text: Annotated[str, typer.Argument(help="A text, or its beginning, to walk along.")] = "",
    schema: SchemaOption = None,
    pattern: RegexOption = None,
    choices: ChoicesOption = None,
    grammar_file: GrammarOption = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Tokens of this model; default: bytes.")
    ] = None,
    order: OrderOption = "declared",
    whitespace: WhitespaceOption = "natural",
    numbers: NumbersOption = "natural",
    strings: StringsOption = "any",
    strict: StrictOption = False,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page with drawings of the automaton and its masks to this file."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the grammar, the states along a text, and the size of each state's mask."""
    with reported():
        spelling = {"order": order, "whitespace": whitespace, "numbers": numbers, "strings": strings}
        grammar = constraint(schema, pattern, choices, grammar_file, strict=strict, **spelling)
        vocabulary, tokens = tokens_of(text, model)
        steps = list(walked(grammar, vocabulary, tokens))
        if html is not None:
            from tokenform.engine.drawing import explained_html

            write_file(html, explained_html(grammar, vocabulary, steps))
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


@app.command()
def demo(as_json: JsonOption = False) -> None:
    """Write a document for a real schema with the built-in model, and say what it cost."""
    with reported():
        from tokenform.integrations.demonstration import PROMPT, SCHEMA, demonstrate

        result, verdict = demonstrate()
    if as_json:
        typer.echo(json.dumps(described(result) | {"valid": verdict is None}, ensure_ascii=False))
    else:
        stats = result.stats
        typer.echo(f"prompt    {PROMPT}")
        typer.echo(f"schema    {', '.join(SCHEMA['properties'])}")
        typer.echo(f"document  {result.text}")
        typer.echo(f"judged    {'valid' if verdict is None else verdict} (by the package jsonschema)")
        masks = 1e6 * stats.seconds_mask / max(stats.tokens, 1)
        typer.echo(
            f"figures   {stats.tokens} tokens in {stats.forwards} forward passes; "
            f"model {stats.seconds_model:.2f} s, masks {masks:.0f} µs a token; "
            f"log-probability {result.logprob:.1f}"
        )
    if verdict is not None:
        raise typer.Exit(1)


def _job(name: str, summary: str) -> None:
    """A subcommand whose arguments are those of `bench.evaluate`."""

    @evaluations.command(
        name,
        help=summary,
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    def job(context: typer.Context) -> None:
        from tokenform.bench.evaluate.__main__ import main as evaluate

        raise typer.Exit(evaluate([name, *context.args]))


_job("jsonschemabench", "A model writes documents for many schemas under several engines; they are judged.")
_job("masks", "Given documents are walked through each engine's masks, without a model.")
_job("report", "Write the report of a run again.")


@evaluations.command()
def fidelity(
    prompt: Annotated[str, typer.Argument(help="The prompt.")] = "",
    schema: SchemaOption = None,
    pattern: RegexOption = None,
    choices: ChoicesOption = None,
    grammar_file: GrammarOption = None,
    model: ModelOption = None,
    draws: Annotated[int, typer.Option(min=1, help="Texts that each sampler draws.")] = 100,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of a text.")] = 64,
    temperature: Annotated[float, typer.Option(min=0.01, help="Of the target.")] = 1.0,
    seed: Annotated[int, typer.Option()] = 0,
    max_forwards: Annotated[
        int, typer.Option(min=1, help="Forward passes after which a sampler gives up.")
    ] = 5000,
    plot: Annotated[
        Path | None, typer.Option(help="File for a plot of distance against cost (needs matplotlib).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """How far each sampler's law is from the model's own law under the constraint, and what it costs."""
    with reported():
        grammar = constraint(schema, pattern, choices, grammar_file)
        tell(grammar)
        from tokenform.decoding.aligned.fidelity import default_samplers, evaluate_fidelity
        from tokenform.integrations.generation import Generator

        writer = Generator(None if model == "builtin" else model)
        network, ids = writer.language_model(), writer.prompt_ids(prompt, grammar)
        automaton = grammar.compile(writer.vocabulary)
        found = evaluate_fidelity(
            network,
            automaton,
            default_samplers(temperature=temperature),
            prompt=ids,
            max_tokens=max_tokens,
            draws=draws,
            seed=seed,
            max_forwards=max_forwards,
            report=lambda name: typer.echo(f"{name} ...", err=True),
        )
        if plot is not None:
            found.plot(plot)
    typer.echo(json.dumps(found.as_dict()) if as_json else found.table())


@contextmanager
def reported() -> Iterator[None]:
    """Errors of the library as one sentence on standard error and an exit code."""
    try:
        yield
    except errors.TokenformError as error:
        place = f" (at {error.pointer})" if error.pointer and error.pointer not in str(error) else ""
        typer.echo(f"tokenform: {error}{place}", err=True)
        raise typer.Exit(1 if isinstance(error, _REFUSALS) else 2) from None


def said_at(pointer: str) -> str:
    """Where a constraint says what was expected: a place in a schema, or what the grammar was made of."""
    return f"schema at {pointer or 'the root'}" if pointer[:1] in ("", "/") else pointer


def tell(grammar: Grammar) -> None:
    """What was ignored, loosened or misspelt, on standard error."""
    for line in grammar.report:
        typer.echo(f"tokenform: note: {line}", err=True)


def constraint(
    schema: str | None, pattern: str | None, choices: list[str] | None, grammar: str | None, **options: Any
) -> Grammar:
    """The grammar of the one constraint that the command line gives."""
    named = {"--schema": schema, "--regex": pattern, "--choices": choices or None, "--grammar": grammar}
    given = [name for name, value in named.items() if value is not None]
    if not given:
        raise errors.OptionError("no constraint is given; pass --schema, --regex, --choices or --grammar.")
    if len(given) > 1:
        raise errors.OptionError(f"{' and '.join(given)} are given; pass one constraint.")
    if pattern is not None:
        return regex(pattern)
    if choices:
        return choice(choices)
    if grammar is not None:
        return (gbnf if grammar.endswith(".gbnf") else lark)(read_text(grammar, errors.InvalidGrammar))
    assert schema is not None
    if ":" in schema and not Path(schema).exists():
        return from_type(named_type(schema), **options)
    return json_schema(read_text(schema, errors.InvalidSchema), **options)


def read_text(path: str, error: type[errors.TokenformError]) -> str:
    """The text of a file."""
    try:
        return read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as broken:
        raise error(f"{path} is not UTF-8 (byte {broken.start}).") from None


def named_type(name: str) -> Any:
    """The object that `module:Name` names; modules of the working folder are found."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise errors.OptionError(f"{name!r} can't be imported: {error}.") from None
    finally:
        sys.path.remove("")
    return found


def read_file(path: str | None) -> bytes:
    """The bytes of a file."""
    try:
        return Path(path or "").read_bytes()
    except OSError as error:
        raise errors.OptionError(f"{path!r} can't be read: {error.strerror or error}.") from None


def write_file(path: Path, text: str) -> None:
    """Write a file."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise errors.OptionError(f"{str(path)!r} can't be written: {error.strerror or error}.") from None


def byte_vocabulary() -> Vocabulary:
    """The 256 bytes and an end."""
    return Vocabulary([bytes([byte]) for byte in range(256)] + [b""], [256], [256])


def tokens_of(text: str, model: str | None) -> tuple[Vocabulary, list[int]]:
    """A vocabulary and the text in its tokens: those of a model, or bytes."""
    if model is None:
        return byte_vocabulary(), list(text.encode())
    from tokenform.engine import tokenizers
    from tokenform.integrations.generation import Generator

    writer = Generator(None if model == "builtin" else model)
    return writer.vocabulary, tokenizers.encode(writer.tokenizer, text, specials=False)


def walked(grammar: Grammar, vocabulary: Vocabulary, tokens: list[int]) -> Iterator[dict[str, Any]]:
    """The states along the tokens, as far as they are allowed."""
    automaton = grammar.compile(vocabulary)
    state, after = automaton.start, b""
    for token in [*tokens, None]:
        yield {
            "after": after.decode("utf-8", "replace"),
            "state": state,
            "allowed": len(automaton.allowed_tokens(state)),
            "accepting": automaton.is_accepting(state),
            "distance": automaton.distance(state),
            "forced": automaton.forced_bytes(state).decode("utf-8", "replace"),
            "place": automaton.describe(state),
        }
        if token is None or not automaton.allows(state, token):
            return
        state, after = automaton.advance(state, token), vocabulary.tokens[token]


def described(result: Any) -> dict[str, Any]:
    """A result as JSON."""
    return {
        "text": result.text,
        "tokens": result.tokens,
        "logprob": result.logprob,
        "stats": vars(result.stats),
    }


def main() -> None:
    """The entry point of the installed command."""
    app()


if __name__ == "__main__":
    main()
