"""`tokenform serve`: a model behind the APIs of OpenAI and Anthropic."""

from __future__ import annotations

import gc
import logging
import os
from typing import Annotated

import typer

from tokenform.cli.reporting import reported
from tokenform.errors import OptionError, extras


def serve(
    model: Annotated[
        str | None, typer.Argument(help="A Hugging Face model by path or name; default: built in.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 is everybody's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: one that is free.")] = 8000,
    api_key: Annotated[
        list[str] | None,
        typer.Option(help="A key that may ask; repeat it.  Or TOKENFORM_API_KEYS, with commas between them."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What clients call the model.")] = None,
    tool_format: Annotated[
        str | None,
        typer.Option(
            help="How the model writes calls of tools, where its template does not show it: hermes, ..."
        ),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Most texts that run together.")] = 32,
    waiting: Annotated[int, typer.Option(help="Most texts that wait; more are refused.")] = 256,
    max_tokens: Annotated[int, typer.Option(help="Most tokens of an answer.")] = 8192,
    concurrent: Annotated[int, typer.Option(help="Most requests of a key at once.")] = 64,
    timeout: Annotated[float, typer.Option(help="Seconds that a request may take.")] = 600.0,
    origin: Annotated[
        list[str] | None, typer.Option(help="A web site whose pages may ask (CORS); repeat it.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="A name that a server without keys answers to; repeat it.")
    ] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Serve a model: /v1/chat/completions, /v1/responses, /v1/messages, /v1/completions."""
    with reported():
        with extras():
            import uvicorn

            from tokenform.server import Engine, Key, create_app
        if log_level not in ("debug", "info", "warning", "error"):
            raise OptionError(f"log_level={log_level!r} is not known; choose debug, info, warning or error.")
        if not 0 <= port <= 65535:
            raise OptionError(f"port={port} is none; ports are from 0 to 65535.")
        secrets = [one.strip() for one in os.environ.get("TOKENFORM_API_KEYS", "").split(",")]
        given = [one for one in [*(api_key or ()), *secrets] if one]
        keys = [
            Key(secret, f"key-{number}", concurrent=concurrent, tokens=max_tokens)
            for number, secret in enumerate(given)
        ] or [Key(concurrent=concurrent, tokens=max_tokens)]
        engine = Engine(model, name=name, tool_format=tool_format, batch_size=batch_size, waiting=waiting)
        app = create_app(
            engine, keys=keys, timeout=timeout, origins=origin or (), hosts=[host, *(allowed_host or ())]
        )
    gc.collect()  # what is there by now stays: collections between the tokens need not look through it again,
    gc.freeze()  # which took a quarter of a second each
    logging.basicConfig(format="%(levelname)s %(name)s %(message)s")
    logging.getLogger("tokenform").setLevel(log_level.upper())
    uvicorn.run(app, host=host, port=port, log_level=log_level, timeout_graceful_shutdown=30)
