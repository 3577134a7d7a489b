"""Command line of the evaluation: `tokenform evaluate`, also `python -m tokenform_bench.evaluate`."""

from __future__ import annotations

import argparse
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from tokenform._core import json_options
from tokenform.errors import DataError, TokenformError
from tokenform_bench.engines import missing
from tokenform_bench.evaluate.job import Limits, judge, run
from tokenform_bench.evaluate.plan import GENERATED, PROMPTS, SCOREBOARD, Options, source
from tokenform_bench.evaluate.report import write_report
from tokenform_bench.evaluate.store import Store
from tokenform_bench.evaluate.tasks import make_tasks

_INTERRUPTED = 130
MASK_ENGINES = ("tokenform", "llguidance", "xgrammar")
BOARD_ENGINES = ("tokenform", "llguidance", "xgrammar", "outlines_core", "none")
BOARD_TASKS = (
    "extraction:40",
    "extraction_aside:200",
    "bfcl:200",
    "gsm8k:50",
    "human_eval:40",
    "maskbench:50",
)
BOARD_TOKENS = 160
OUT = Path("evaluation")
WHITESPACE = dict(json_options())["whitespace"]


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the defaults that say something."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        plain = action.default is None or action.default is False
        return action.help if plain else super()._get_help_string(action)


class _Parser(argparse.ArgumentParser):
    """Mistakes are one sentence; options are spelled out; help shows the defaults."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _Help)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"tokenform: {message}; see {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    top = _Parser(prog="tokenform evaluate", description="Compare engines over JSON Schemas.")
    jobs = top.add_subparsers(dest="job", required=True)
    default = Options()
    bench = jobs.add_parser(
        "jsonschemabench", help="a model writes documents under each engine; they are judged"
    )
    masks = jobs.add_parser("masks", help="walk given documents through each engine's masks, without a model")
    board = jobs.add_parser(
        "scoreboard", help="a model answers tasks under each engine's own defaults; right, wrong, valid, cost"
    )
    _add_common(bench, default.engines)
    _add_common(masks, MASK_ENGINES)
    _add_common(board, BOARD_ENGINES)
    _add_writing(bench, ",".join(default.tasks), default.max_tokens)
    _add_writing(board, None, BOARD_TOKENS)
    board.add_argument(
        "--batch",
        type=int,
        default=16,
        help="tasks whose texts are written together, with all engines; 0: each text alone",
    )
    board.add_argument(
        "--prompt",
        choices=PROMPTS,
        default="library",
        help="the text as a string, as a Generator reads it; text and instruction as a user's message; the "
        "same with the JSON Schema shown",
    )
    for sub, order in ((bench, default.order), (masks, "any")):
        sub.add_argument(
            "--data",
            help="folder of schemas, .jsonl(.xz) file in MaskBench's format, hub[:NAME] for a data set of "
            "the hub (epfl-dlab/JSONSchemaBench without a name) or a local folder that datasets reads, or "
            "generated; default: $TOKENFORM_SHARED's MaskBench file, or else generated",
        )
        sub.add_argument("--split", default=default.split, help="of the hub's data set")
        sub.add_argument("--limit", type=_limit, default=default.limit, help='schemas ("all": all of them)')
        sub.add_argument("--order", choices=("declared", "any"), default=order, help="of an object's keys")
        sub.add_argument(
            "--whitespace",
            choices=WHITESPACE,
            default=default.whitespace,
            help="between a document's tokens",
        )
    again = jobs.add_parser("report", help="write the report of a run again, finished or not")
    again.add_argument("--out", type=Path, default=OUT, help="folder of the run")
    return top


def _add_common(sub: argparse.ArgumentParser, engines: tuple[str, ...]) -> None:
    sub.add_argument("--out", type=Path, default=OUT, help="folder of the run: its database and its report")
    sub.add_argument(
        "--engines", type=_names, help=f"comma-separated; default: of {','.join(engines)} those installed"
    )
    sub.add_argument("--seed", type=int, default=Options.seed, help="of the choice of cases and the draws")
    sub.add_argument("--workers", type=int, default=Limits.workers, help="processes, or Ray actors")
    sub.add_argument(
        "--timeout", type=float, default=Limits.timeout, help="seconds for one schema on one engine"
    )
    sub.add_argument(
        "--judge-timeout", type=float, default=Limits.judge_timeout, help="seconds for one verdict"
    )
    sub.add_argument("--memory", type=int, default=Limits.memory_mib, help="MiB for one worker")
    sub.add_argument("--ray", metavar="auto|ADDRESS", help="run on a Ray cluster; else in processes here")
    sub.add_argument("--quiet", action="store_true", help="no progress")


def _add_writing(sub: argparse.ArgumentParser, tasks: str | None, max_tokens: int) -> None:
    sub.add_argument("--model", help="a Hugging Face model by path or name; default: the built-in one")
    sub.add_argument(
        "--tasks",
        type=_names,
        default=tasks,
        help='task families, with a number of their own as "family:12", or .jsonl files; "" for none; of a '
        f"scoreboard, without it: of {','.join(BOARD_TASKS)} those whose data is here or can be fetched",
    )
    sub.add_argument("--task-count", type=int, help="tasks of each family; default: 50, at most --limit")
    sub.add_argument("--max-tokens", type=int, default=max_tokens, help="most tokens of a text")
    sub.add_argument("--temperature", type=float, default=Options.temperature, help="0 is greedy")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _limit(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'a number or "all", not {text!r}')
    return int(text)


def _options(arguments: argparse.Namespace) -> Options:
    known = set(Options.__dataclass_fields__)
    values: dict[str, Any] = {name: value for name, value in vars(arguments).items() if name in known}
    if arguments.engines is None:
        usual = {"masks": MASK_ENGINES, SCOREBOARD: BOARD_ENGINES}.get(arguments.job, Options.engines)
        absent = missing(usual)
        values["engines"] = tuple(name for name in usual if name not in absent)
        if absent:
            _note(
                f"{', '.join(absent)}: not installed, left out; to compare, pip install 'tokenform[peers]'",
                arguments,
            )
    if arguments.job == SCOREBOARD:
        return Options(**{**values, "tasks": arguments.tasks or _at_hand(arguments)})
    options = Options(**values)
    if source(options) == GENERATED and arguments.data is None:
        _note(
            "no benchmark's data is here: the schemas are generated; --data hub downloads JSONSchemaBench "
            "(pip install 'tokenform[data]'), --data FOLDER takes your own",
            arguments,
        )
        options = replace(options, data=GENERATED)  # so that the report says it
    return options


def _at_hand(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The scoreboard's families whose data is here, or was fetched."""
    found = []
    for name in BOARD_TASKS:
        try:
            next(make_tasks(name.partition(":")[0], 1, arguments.seed))
            found.append(name)
        except DataError as error:
            _note(f"{name} is left out: {error}", arguments)
    return tuple(found)


def _note(text: str, arguments: argparse.Namespace) -> None:
    if not arguments.quiet:
        print(f"tokenform: note: {text}", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """Run the command; 0: done, 1: units failed (the same command tries them again), 2: bad input, 130:
    stopped by Ctrl-C (the same command goes on)."""
    arguments = parser().parse_args(argv)
    database = arguments.out / "results.sqlite"
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if arguments.job == "report":
            if not database.is_file():
                print(f"tokenform: there is no run in {arguments.out}; pass its --out", file=sys.stderr)
                return 2
            judge(database)
        else:
            limits = Limits(
                arguments.workers,
                arguments.timeout,
                arguments.memory,
                arguments.judge_timeout,
                arguments.ray,
                getattr(arguments, "batch", 0),
            )
            run(_options(arguments), database, limits, quiet=arguments.quiet)
        page, text = write_report(database)
        failed = _failed(database)
    except TokenformError as error:
        print(f"tokenform: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        with Store(database) as store:
            done = len(store.done())
        print(f"\nstopped after {done} answers; the same command goes on from here", file=sys.stderr)
        return _INTERRUPTED
    if arguments.job == SCOREBOARD:
        print(text.read_text("utf-8"))
    print(f"{page}\n{text}")
    if failed:
        print(f"tokenform: {failed}; the same command tries again", file=sys.stderr)
    return 1 if failed else 0


def _failed(database: Path) -> str:
    """How many units failed, and how the first did; "" where none did."""
    with Store(database) as store:
        found = [row for row in store.rows() if row["status"] not in ("ok", "refused")]
        done = len(store.done())
    if not found:
        return ""
    first = found[0]
    why = f"{first['case_id']} on {first['engine']}: {first['status']} {first['detail'] or ''}".rstrip()
    return f"{len(found)} of {done} units failed ({why})"


if __name__ == "__main__":
    sys.exit(main())
