"""`tokenform serve`: a model behind the APIs of OpenAI and Anthropic."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tokenform import __version__
from tokenform.cli.reporting import reported
from tokenform.errors import OptionError, TokenformError, extras
from tokenform.frontends.garbage import serve_from_here

if TYPE_CHECKING:
    from tokenform.server import Engine, Key
    from tokenform.server.keys import KeyFile

logger = logging.getLogger("tokenform.server")


def serve(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A Hugging Face model by path or name; default: built in.  builtin:diffusion, or the folder "
            "of a DiffusionGemma: a model that fills canvases."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 is everybody's.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: one that is free.")] = 8000,
    api_key: Annotated[
        list[str] | None,
        typer.Option(help="A key that may ask; repeat it.  Or TOKENFORM_API_KEYS, with commas between them."),
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(help="Lines of a name and a key; read again when it changes, and at SIGHUP."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What clients call the model.")] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, ...; default: the GPU, if any.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="Of the weights: float32, bfloat16, ...; default: the file's.")
    ] = None,
    chat_template: Annotated[
        Path | None, typer.Option(help="A file with a chat template (Jinja), in place of the model's own.")
    ] = None,
    tool_format: Annotated[
        str | None,
        typer.Option(
            help="How the model writes calls of tools, where its template does not show it: hermes, ..."
        ),
    ] = None,
    length: Annotated[
        int | None, typer.Option(help="Positions of a diffusion model's canvas: tokens of the longest text.")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="Of the processor, for the model; default: as many as the process may use."),
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
    playground: Annotated[
        bool | None, typer.Option(help="Serve the page; default: where no key is asked for.")
    ] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    log_format: Annotated[str, typer.Option(help="text, or json: an object a line.")] = "text",
) -> None:
    """Serve a model: /v1/chat/completions, /v1/responses, /v1/messages, /v1/completions."""
    if log_format == "json":  # bars of the libraries that read weights are no lines of JSON
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    with reported():
        with extras():
            import uvicorn

            from tokenform.server import Engine, create_app
            from tokenform.server.connections import PATIENCE, ClosingServer, Connection
            from tokenform.server.record import write_logs
        for option, value, known in (
            ("log_level", log_level, ("debug", "info", "warning", "error")),
            ("log_format", log_format, ("text", "json")),
        ):
            if value not in known:
                raise OptionError(f"{option}={value!r} is not known; choose {', '.join(known)}.")
        if not 0 <= port <= 65535:
            raise OptionError(f"port={port} is none; ports are from 0 to 65535.")
        for option, number in (("timeout", timeout), ("max-tokens", max_tokens), ("concurrent", concurrent)):
            if not number > 0:
                raise OptionError(f"--{option} {number} lets no request be answered; give at least 1.")
        keys, file = _keys(api_key or (), api_key_file, {"concurrent": concurrent, "tokens": max_tokens})
        options = {"device": device, "dtype": dtype, "chat_template": _read(chat_template), "length": length}
        engine_options: dict[str, Any] = {
            option: value for option, value in options.items() if value is not None
        }
        _use_threads(threads)
        write_logs(log_format, log_level, libraries=model not in (None, "builtin:diffusion"))
        listening = _bound(host, port)  # before the model, which takes long to load
        engine = Engine(
            model,
            name=name,
            tool_format=tool_format,
            batch_size=batch_size,
            waiting=waiting,
            **engine_options,
        )
        hosts = [host, *(allowed_host or ())]
        more: dict[str, Any] = {"playground": playground, "key_file": file, "hosts": hosts}
        app = create_app(engine, keys=keys, timeout=timeout, origins=origin or (), **more)
    engine.warm_up()
    serve_from_here()
    if file is not None and hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: file.forget())
    # no lines of uvicorn for requests: each has one of its own
    uvicorn_options: dict[str, Any] = {"log_config": None, "log_level": log_level, "access_log": False}
    uvicorn_options |= {"http": Connection, "timeout_keep_alive": int(PATIENCE)}
    config = uvicorn.Config(app, host=host, port=port, **uvicorn_options)
    listening.listen(config.backlog)
    _banner(engine, f"http://{_shown(host)}:{listening.getsockname()[1]}", app)
    server = ClosingServer(config)
    with contextlib.suppress(KeyboardInterrupt):  # a signal to end, which was heeded
        server.run(sockets=[listening])
    if not server.started:
        raise typer.Exit(3)


def _bound(host: str, port: int) -> socket.socket:
    """A socket at the address, which does not listen yet.

    Raises:
        OptionError: it can't be had.
    """
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        why = error.strerror or error
        raise OptionError(
            f"--host {host} --port {port} can't be listened at: {why}; choose another, or port 0."
        ) from None
    bound.set_inheritable(True)
    return bound


def _use_threads(threads: int | None) -> None:
    """Lets passes of the model use so many; None: those of the environment, within the container's quota."""
    import torch

    from tokenform.server.processors import usable_processors

    if threads is not None and threads < 1:
        raise OptionError(f"threads={threads} is not possible; give at least 1.")
    if threads is not None:
        torch.set_num_threads(threads)
    elif "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(min(torch.get_num_threads(), usable_processors()))


def _keys(api_keys: Any, path: Path | None, limits: dict[str, Any]) -> tuple[list[Key], KeyFile | None]:
    """The callers: those of the command and the environment, and those of the file."""
    from tokenform.server import Key
    from tokenform.server.keys import KeyFile

    environment = os.environ.get("TOKENFORM_API_KEYS")
    secrets = list(api_keys)
    if environment is not None:
        named = [one.strip() for one in environment.split(",")]
        secrets += [one for one in named if one] or [""]
    # an empty one is a variable that was not set, and not the wish to serve everybody
    for place, secret in enumerate(secrets):
        if not secret.strip():
            source = "--api-key" if place < len(api_keys) else "TOKENFORM_API_KEYS"
            raise OptionError(f"{source} is empty: give a key, or leave {source} out to let anybody ask.")
    keys = [Key(secret, f"key-{number}", **limits) for number, secret in enumerate(secrets)]
    if path is not None:
        return keys, KeyFile(path, lambda secret, name: Key(secret, name, **limits))
    return keys or [Key(**limits)], None


def _read(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"the chat template {path} can't be read: {error}.") from None


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _banner(engine: Engine, url: str, app: Any) -> None:
    """What is served, and where."""
    generator, guard = engine.generator, app.state.server.guard
    placed = [str(getattr(generator.model, name, "")).removeprefix("torch.") for name in ("device", "dtype")]
    size = f"{generator.vocabulary.size:,} tokens"
    logger.info(
        "tokenform %s, model %s: %s", __version__, engine.name, ", ".join([size, *filter(None, placed)])
    )
    calls = "not known (--tool-format)" if isinstance(engine.format, TokenformError) else engine.format.name
    logger.info("calls of tools: %s; keys: %s", calls, "none, anybody may ask" if guard.open else guard.count)
    logger.info("running on %s (Ctrl-C ends it)", url)
    logger.info("API: %s/v1; also /docs, /health, /metrics, /version", url)
    if any(getattr(route, "path", "") == "/playground" for route in app.routes):
        logger.info("playground: %s/", url)
