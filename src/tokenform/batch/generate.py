"""Generate: one object that writes the texts of a batch of rows, in whatever process it lands.

Purpose: what Ray Data's `map_batches`, Spark's `mapInPandas`, Dask's `map_partitions` and the command call.
Invariant: a row's text depends on its id, prompt and constraint and on the options, not on the partition
that it came in (up to the model's own rounding, which may differ with the shape of a batch); a row that can't
be written costs itself alone.  It pickles: a model travels as its name or as a function that makes it, a
constraint as what it is made of.
Complexity: a model and the constraints are made once a process; a row costs what its text costs.
Rejected: holding a model object (it would travel with every task).
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tokenform.batch.opening import name_of, open_writer, portable
from tokenform.batch.rows import own_grammar, plain, prompt_of, text_of
from tokenform.errors import ModelError, OptionError, TokenformError, extras
from tokenform.frontends import Grammar, from_type, json_schema, one_constraint, to_constraint
from tokenform.frontends.python_types import is_type

Row = Mapping[str, Any]
Request = tuple[Any, Any, int]
"""Prompt, constraint, seed."""


class Column(NamedTuple):
    """A column that is written: how its name ends, the member of a row's record, and what stands for None."""

    suffix: str
    member: str
    dtype: Any = object
    missing: Any = None


COLUMNS = (
    Column("", "text"),
    Column("_error", "error"),
    Column("_logprob", "logprob", np.float64, np.nan),
    Column("_tokens", "tokens", np.int64, 0),
    Column("_reason", "ended"),
    Column("_cut", "cut"),
    Column("_reasoning", "reasoning"),
)


class Generate:
    """Writes a text for each row of a batch.

    Args:
        model: None for the built-in model; a path or hub name; an importable function without arguments that
            makes a `Generator`; or an `Endpoint`.  It is opened in each process at its first row.
        grammar: a grammar, a schema, a type or None (any text), as for `Generator.sample`; rows may have
            their own.
        schema, regex, choices: the same said otherwise, as for `tf.generate`.
        spelling: options of `tf.json_schema`, for `schema` and for rows' own schemas.
        prompt: the column of prompts: texts, or chat messages (a list, or its JSON text).
        key: the column of ids, which are compared as texts.  Rows of a batch without this column are keyed by
            their prompts: equal prompts have equal texts.
        schema_column, regex_column, grammar_column: columns with a row's own schema (a mapping or JSON text),
            pattern, or grammar (Lark's language or GBNF); an empty one means the constraint of all.
        output: what is written: this column, and `<output>_error`, `<output>_logprob`, `<output>_tokens`,
            `<output>_reason` and `<output>_cut`.
        seed: key of all draws, with the row's id.
        max_tokens, temperature, top_p, sampler, reason: as for `tf.generate`.
        batch_size: most texts that are written together.
        threads: of the processor, in a process that is only for this; more may round otherwise.
        on_error: "return" puts what is wrong with a row into `<output>_error`; "raise" raises it.
        **options: of `Generator`, for models by name: device, dtype, drafter, ...  Drafts are off unless
            asked for: their shapes follow the clock, and a model may round each shape otherwise.
    Raises:
        OptionError: an argument has a value that it can't have.

    >>> import numpy as np
    >>> from tokenform.batch import Generate
    >>> write = Generate(choices=["new", "paid", "shipped"])
    >>> batch = {"id": np.array([7, 8]), "prompt": np.array(["The order is paid.", "It is new."])}
    >>> write(batch)["output"].tolist()
    ['paid', 'new']
    """

    def __init__(
        self,
        model: Any = None,
        schema: Any = None,
        *,
        grammar: Any = None,
        regex: str | None = None,
        choices: Sequence[str] | None = None,
        spelling: Mapping[str, Any] | None = None,
        prompt: str = "prompt",
        key: str = "id",
        schema_column: str | None = None,
        regex_column: str | None = None,
        grammar_column: str | None = None,
        output: str = "output",
        seed: int = 0,
        max_tokens: int = 512,
        temperature: float = 0.0,
        top_p: float = 1.0,
        sampler: Any = None,
        reason: Any = None,
        batch_size: int = 16,
        threads: int = 1,
        on_error: str = "return",
        **options: Any,
    ) -> None:
        if on_error not in ("return", "raise"):
            raise OptionError(f'on_error={on_error!r} is not known; choose "return" or "raise".')
        for name, value in (("batch_size", batch_size), ("max_tokens", max_tokens), ("threads", threads)):
            if value < 1:
                raise OptionError(f"{name}={value} is not possible; give at least 1.")
        if sampler is not None and (temperature != 0.0 or top_p != 1.0):
            raise OptionError("a sampler has its own temperature and truncation; give them to it.")
        self.model = portable(model)
        self.constraints = {"schema": schema, "regex": regex, "choices": choices, "grammar": grammar}
        self.spelling = dict(spelling or {})
        self.prompt, self.key, self.output = prompt, key, output
        self.own = {"schema": schema_column, "regex": regex_column, "grammar": grammar_column}
        self.seed, self.max_tokens, self.batch_size, self.threads = seed, max_tokens, batch_size, threads
        self.temperature, self.top_p, self.sampler = temperature, top_p, sampler
        self.thinks = {} if reason is None else {"reason": reason}
        self.on_error, self.options = on_error, options
        self.constraint()  # refused here, not in a worker

    @property
    def outputs(self) -> tuple[str, ...]:
        """The columns that are written."""
        return tuple(f"{self.output}{column.suffix}" for column in COLUMNS)

    def constraint(self) -> Any:
        """The constraint of rows that have none of their own; made once a process."""
        made = self.__dict__.get("_constraint")
        if made is None:
            made = one_constraint(**self.constraints)
            if isinstance(made, list | tuple):
                raise OptionError("one constraint serves all rows; give rows their own by schema_column=.")
            if made is not None and not isinstance(made, Grammar) and self.spelling:
                made = (from_type if is_type(made) else json_schema)(made, **self.spelling)
            self._constraint = made = to_constraint(made)
        return made

    def open(self) -> Any:
        """What this process writes with: it has `sample`, as `Generator` has; opened once a process.

        Raises:
            ModelError: it can't be opened.
        """
        return open_writer(self.model, self.options, self.batch_size)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Write the texts of a batch.

        Args:
            batch: columns of equal length, arrays or lists.
        Returns:
            The same columns and those of `outputs`: texts (None where a row has none), what was wrong (None:
            nothing), float64 log-probabilities (NaN where unknown), int64 numbers of tokens, why texts ended
            (`Result.reason`), what `max_tokens` made of them: None, or `Result.cut` as JSON text; and their
            thoughts.
        """
        outputs = self.rows([dict(zip(batch, values)) for values in zip(*batch.values(), strict=True)])
        for one in outputs:
            if "error" in one:
                one["error"] = f"{one['error']}: {one['reason']}"
        return {**batch, **{f"{self.output}{column.suffix}": _filled(column, outputs) for column in COLUMNS}}

    def frame(self, frame: Any) -> Any:
        """The same for a pandas frame: what Dask's `map_partitions` takes."""
        outputs = self({str(name): frame[name].to_numpy() for name in frame.columns})
        return frame.assign(**{name: outputs[name] for name in self.outputs})

    def frames(self, frames: Iterable[Any]) -> Iterator[Any]:
        """The same for an iterator of pandas frames: what Spark's `mapInPandas` takes."""
        for frame in frames:
            yield self.frame(frame)

    def rows(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Write the texts of rows.

        Returns:
            For each row {"text", "logprob", "tokens", "ended", "cut", "reasoning"}, or {"error", "reason"}:
            a class and its words.
        """
        done: dict[int, dict[str, Any]] = {}
        requests: dict[int, Request] = {}
        for number, row in enumerate(rows):
            self.check(row)
            try:
                requests[number] = self._request(row)
            except TokenformError as error:
                done[number] = self._record(error)
        numbers = list(requests)
        for start in range(0, len(numbers), self.batch_size):
            part = numbers[start : start + self.batch_size]
            results = self._write([requests[number] for number in part])
            done.update((number, self._record(one)) for number, one in zip(part, results, strict=True))
        return [done[number] for number in range(len(rows))]

    def check(self, row: Row) -> None:
        """OptionError where a row has one of the columns that are written."""
        clash = [name for name in self.outputs if name in row]
        if clash:
            raise OptionError(f"the rows have a column {clash[0]!r} already; give another output=.")

    def fingerprint(self) -> dict[str, Any]:
        """What the texts depend on beside the rows; two runs of one job have the same."""
        made = self.constraint()
        source = made.to_bytes() if isinstance(made, Grammar) else repr(made).encode()
        return {
            "model": name_of(self.model),
            "constraint": hashlib.blake2b(source, digest_size=16).hexdigest(),
            "columns": [self.prompt, self.key, self.output, *self.own.values()],
            "spelling": self.spelling,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "drawing": [self.temperature, self.top_p, repr(self.sampler), *map(repr, self.thinks.values())],
            "options": {name: str(value) for name, value in sorted(self.options.items())},
        }

    def row_digest(self, row: Row) -> str:
        """What a row asks for: when it changes, its text is written again."""
        names = [self.prompt, *(name for name in self.own.values() if name is not None)]
        parts = json.dumps([text_of(plain(row.get(name))) for name in names])
        return hashlib.blake2b(parts.encode(), digest_size=8).hexdigest()

    def row_seed(self, key: str) -> int:
        """The seed of the row with this id: 63 bits."""
        digest = hashlib.blake2b(f"{self.seed}:{key}".encode("utf-8", "surrogatepass"), digest_size=8)
        return int.from_bytes(digest.digest(), "little") >> 1

    def _request(self, row: Row) -> Request:
        """What a row asks for."""
        prompt, key = prompt_of(row, self.prompt), plain(row.get(self.key))
        seed = self.row_seed(text_of(prompt) if key is None else str(key))
        own_values = {kind: plain(row.get(column)) for kind, column in self.own.items() if column is not None}
        own = {kind: value for kind, value in own_values.items() if value not in (None, "")}
        if len(own) > 1:
            raise OptionError(f"the row has {' and '.join(own)}; give it one constraint.")
        for kind, value in own.items():
            spelling = tuple(sorted(self.spelling.items()))
            text = value if isinstance(value, str) else json.dumps(value)
            return prompt, own_grammar(kind, text, spelling), seed
        return prompt, self.constraint(), seed

    def _write(self, requests: list[Request]) -> list[Any]:
        """Results and errors.  A call that fails as a whole is made again row by row."""
        prompts, constraints, seeds = map(list, zip(*requests))
        try:
            groups = self.open().sample(
                prompts,
                constraints,
                seed=seeds,
                max_tokens=self.max_tokens,
                on_error="return",
                progress=False,
                **self._drawing(),
                **self.thinks,
            )
            return [one for (one,) in groups]
        except ModelError:
            raise
        except TokenformError as error:
            if len(requests) == 1:
                return [error]
            return [result for one in requests for result in self._write([one])]

    def _drawing(self) -> dict[str, Any]:
        if hasattr(self.model, "open_writer"):
            return {"temperature": self.temperature, "top_p": self.top_p}
        if self.sampler is not None:
            return {"sampler": self.sampler}
        if self.temperature == 0.0 and self.top_p == 1.0 and callable(self.model):
            return {}  # the sampler of the generator that the function made
        with extras():
            from tokenform.decoding.samplers.local import Local
        return {"sampler": Local(temperature=self.temperature, top_p=self.top_p)}

    def _record(self, result: Any) -> dict[str, Any]:
        """What came of a row, as `rows` gives it."""
        if not isinstance(result, TokenformError):
            cut = json.dumps(result.cut) if result.reason == "length" else None
            record = {"text": result.text, "logprob": result.logprob, "tokens": len(result.tokens)}
            return {**record, "ended": result.reason, "cut": cut, "reasoning": result.reasoning}
        if self.on_error == "raise":
            raise result
        at = f" (at {result.pointer})" if result.pointer and result.pointer not in str(result) else ""
        return {"error": type(result).__name__, "reason": f"{result}{at}"}

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "_constraint"}
        try:
            pickle.dumps(state["constraints"])
        except Exception as error:
            raise OptionError(
                f"the constraint can't travel to another process ({error}); give the type or the schema "
                "itself, of a module that can be imported there."
            ) from None
        return state


def _filled(column: Column, records: list[dict[str, Any]]) -> Any:
    values = [record.get(column.member) for record in records]
    array = np.empty(len(values), column.dtype)
    array[:] = [column.missing if value is None else value for value in values]
    return array
