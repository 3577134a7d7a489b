"""Generator: a model, its vocabulary and a sampler, ready to write texts under constraints.

Purpose: turns prompts and grammars into rows, runs them in batches, and turns rows into results.
Invariant: every result's text is complete and accepted by its grammar; what one call does never changes
another.  With a seed, results do not depend on how prompts are batched (up to the model's own rounding).
Rejected: async twins of the methods here (`AsyncGenerator` runs the texts of all its calls as one batch,
which a call's own loop can't).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Generator as Yields
from typing import Any, Literal, NamedTuple

from tokenform.decoding import removed
from tokenform.decoding.aligned.backbone_lm import BackboneLM
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.product import compiled
from tokenform.decoding.aligned.protocols import LanguageModel
from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.alternatives import Origin
from tokenform.decoding.calls import (
    DEFAULT_MAX_TOKENS,
    AnySampler,
    Constraint,
    check_counts,
    check_single,
    check_varied,
    ends_of,
    pair,
    seeds_of,
)
from tokenform.decoding.configuration import configured_sampler, context_length, read_vocabulary
from tokenform.decoding.decoder import Decoder
from tokenform.decoding.decoders import Decoders
from tokenform.decoding.draws import Transform
from tokenform.decoding.instructions import has_patterns, is_bare
from tokenform.decoding.keyed_random import fresh_seed
from tokenform.decoding.mixing import Mixing
from tokenform.decoding.options import OWN, Call, check_drafter, drawn_with
from tokenform.decoding.partial import Partials, TextStream
from tokenform.decoding.progress import Progress
from tokenform.decoding.prompts import (
    Prompted,
    PromptFormat,
    PromptOptions,
    PromptReader,
    ReadPrompt,
    ShowSchema,
    passages,
)
from tokenform.decoding.result_of import result_of
from tokenform.decoding.results import Result, too_long
from tokenform.decoding.row import Row, check_budget, check_shortest
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.backbone import check_model
from tokenform.decoding.speculative.drafters import Hints
from tokenform.decoding.speculative.policies import Policy
from tokenform.decoding.speculative.targets import Mixture, Penalties
from tokenform.decoding.thinking import PromptPreamble, Thinking, Thoughts, thinking_of
from tokenform.decoding.tracing import span_of
from tokenform.decoding.validated import Validation, check_answerable, law_of
from tokenform.decoding.weighted import all_weighted
from tokenform.decoding.writing import Writing
from tokenform.engine import Limits, Vocabulary
from tokenform.errors import BudgetTooSmall, ModelError, OptionError, TokenformError
from tokenform.frontends import Condition, to_constraint


class Entries(NamedTuple):
    """The inputs of a call: an entry of each list for each prompt, and the sampler.

    Attributes:
        grammars: constraints, or the error of one that can't be read.
        companion_prompts: what the mixture's companion reads.
        batched: whether prompts or constraints were a list.
    """

    prompts: list[Any]
    grammars: list[Any]
    companion_prompts: list[Any]
    seeds: Sequence[int | None]
    sampler: AnySampler
    batched: bool

    def single(self) -> tuple[Any, Any, Any, int | None]:
        """Prompt, grammar, companion's prompt and seed of a stream; a list of either is refused."""
        check_single(self.batched)
        return self.prompts[0], self.grammars[0], self.companion_prompts[0], self.seeds[0]


class Generator(Prompted, Writing):
    """Writes texts with a causal language model.

    Args:
        model: a Hugging Face causal language model (or anything called like one), on any device.
        tokenizer: its tokenizer, or a `Vocabulary` where prompts are token ids.
        sampler: how texts are drawn: `Local`, token by token; or a sampler of weighted or exact draws (ASAp,
            CARS, AWRS, SMC, MCMC, Beam); or "model": temperature and truncation that the model's
            generation_config recommends.  Greedy where none is given.
        temperature, top_k, top_p, min_p: those of a `Local`, in place of a sampler.
        drafter: proposes tokens that are then scored together, which changes no text: "auto" takes what the
            grammar forces and what stood in the text before; None is plain decoding; or a drafter of
            `tokenform.drafters`.  Where drafts can't be exact for a model, "auto" is plain decoding.
        verifier: removed; refused with an error.
        policy: makes the policy of a call (size and shape of drafts); None scores what pays.
        transforms: functions (tokens so far, logits [V]) -> logits [V], applied before the mask.
        mixture: of the model and a second model or prompt, one of `tokenform.targets`: `Contrastive`,
            `ContextAware`, `Safety`, `Anchored`.
        companion: the mixture's second model, of the same vocabulary; None is the model itself, which then
            reads the second prompt (`companion_prompt=` of each call).
        penalties: `tokenform.targets.Penalties` on tokens that the text already has.
        batch_size: most sequences that run together.
        prompt_cache: most bytes of keys and values of prompts, on the model's device, for later calls whose
            prompts begin alike; 0 keeps none.  A change of the weights or adapters, or of which
            hooks there are, empties it.
        compile: run steps of decoding as passes of fixed shapes.  "graphs": on a GPU, as CUDA graphs of the
            model as it is; a shape takes a tenth of a second when it first comes up.  True: compiled too,
            which takes seconds to a minute a shape.  Texts are the same up to the model's own rounding; a
            model that can't be run so runs as it is, with a warning.
        format_prompt: for models with a prompt format of their own: (prompt, grammar) -> text.
        chat_options: arguments of the tokenizer's chat template, as `{"enable_thinking": False}`.
        raw, system, show_schema: how prompts are shown, see `PromptOptions`; each call may say otherwise.
    Raises:
        ModelError, VocabularyError: the model or its tokenizer can't be used.

    Example, of a program that writes many texts on a GPU::

        writer = tf.Generator(model, tokenizer, batch_size=32, compile="graphs")
        results = writer.sample(prompts, tf.json_schema(schema))
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        sampler: AnySampler | Literal["model"] | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        drafter: Any = "auto",
        verifier: None = None,
        policy: Callable[[], Policy] | None = None,
        transforms: Sequence[Transform] = (),
        mixture: Mixture | None = None,
        companion: Any = None,
        penalties: Penalties | None = None,
        batch_size: int = 16,
        prompt_cache: int = 256 << 20,
        compile: bool | Literal["graphs"] = False,
        format_prompt: PromptFormat | None = None,
        chat_options: Mapping[str, Any] | None = None,
        raw: bool = False,
        system: str | None = None,
        show_schema: ShowSchema = "auto",
    ) -> None:
        if tokenizer is None:
            raise ModelError("a model needs its tokenizer; pass tokenizer=, or a Vocabulary for bare ids.")
        check_drafter(drafter)
        removed.check(verifier=verifier)
        check_counts(batch_size=batch_size)
        check_model(model)  # before any work
        if sampler == "model":
            sampler = configured_sampler(getattr(model, "generation_config", None))
        if getattr(model, "training", False) is True:
            warnings.warn(
                f"{type(model).__name__} was in training mode; eval() was called on it", stacklevel=2
            )
            model.eval()
        self.model = model
        self.tokenizer = None if isinstance(tokenizer, Vocabulary) else tokenizer
        self.vocabulary = (
            tokenizer if isinstance(tokenizer, Vocabulary) else read_vocabulary(model, tokenizer)
        )
        local_options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
        self.sampler = drawn_with(sampler, Local(temperature=0.0), **local_options)
        self.batch_size = batch_size
        self.transforms = tuple(transforms)
        self.mixing = Mixing(mixture, companion, penalties)
        self.drafter, self.policy = drafter, policy
        self._tokens: list[bytes] = list(self.vocabulary.tokens)
        self._decoders = Decoders(model, self.vocabulary, self.tokenizer, prompt_cache, compile)
        self.thoughts = Thoughts(self.tokenizer, self.vocabulary, self.spell)
        self._prompts = PromptReader(
            self.tokenizer,
            self.vocabulary,
            context_length(model),
            format_prompt,
            chat_options,
            PromptOptions(raw, system, show_schema),
        )

    def __repr__(self) -> str:
        model, tokens = type(self.model).__name__, self.vocabulary.size
        return f"<{type(self).__name__} of {model}, {tokens:,} tokens, {self.sampler!r}>"

    def write(self, prompt: Any, call: Call, *, listed: bool = False) -> Any:
        """The texts of a call; see `Writing.generate`.

        Args:
            listed: give a list for each prompt, also of one text.
        """
        with span_of(self, prompt, call.schema, call.keywords) as ended:
            entries = self.entries(prompt, call)
            check_varied(call.n, entries.sampler)
            for one in entries.prompts if call.feedback else ():
                check_answerable(one)
            if isinstance(entries.sampler, AlignedSampler):
                written = self._weighted(entries.sampler, entries, call)
            else:
                written = self._local(entries.sampler, entries, call)
            return ended(call.collected(written, entries.batched, listed=listed))

    def entries(self, prompt: Any, call: Call) -> Entries:
        """The inputs of a call; a large type takes a second to read."""
        prompts, grammars, batched = pair(prompt, call.constraint, call.on_error)
        prompts = self.framed(prompts, call.raw, call.system, call.show_schema)
        companion_prompts = self.mixing.prompts(call.companion_prompt, len(prompts))
        sampler = self.check_sampler(call.sampler_of(self.sampler))
        return Entries(
            prompts, grammars, companion_prompts, seeds_of(call.seed, len(prompts)), sampler, batched
        )

    def _weighted(self, chosen: AlignedSampler, entries: Entries, call: Call) -> list[list[Any]]:
        """The results or errors of each prompt, from a sampler of whole texts."""
        grammars = entries.grammars
        entry_of_prompt = zip(entries.prompts, grammars, entries.seeds, strict=True)
        requests = [
            (one, made, key) for one, made, key in entry_of_prompt if not isinstance(made, TokenformError)
        ]
        results = iter(all_weighted(self, chosen, requests, call))
        return [[made] * call.n if isinstance(made, TokenformError) else next(results) for made in grammars]

    def _local(self, chosen: Local, entries: Entries, call: Call) -> list[list[Any]]:
        """The results or errors of each prompt, token by token."""
        n, prompts, grammars = call.n, entries.prompts, entries.grammars
        rows: list[Row | TokenformError] = []
        for one, constraint, key, other in zip(
            prompts, grammars, entries.seeds, entries.companion_prompts, strict=True
        ):
            try:
                if isinstance(constraint, TokenformError):
                    raise constraint
                rows += self.rows(
                    one, constraint, n, key, call.max_tokens, other,
                    logprobs=call.logprobs, drafter=call.drafter, stop=call.stop, **call.chat,
                )  # fmt: skip
            except TokenformError as error:
                if call.on_error == "raise":
                    raise
                rows += [error] * n
        running = [row for row in rows if isinstance(row, Row)]
        batch_size = call.batch_size or self.batch_size
        decoder = self.decoder(chosen, min(max(len(running), 1), batch_size), drafter=call.drafter)
        for row, constraint in zip(rows, (one for one in grammars for _ in range(n)), strict=True):
            if isinstance(row, Row) and (law := law_of(chosen, constraint, call)) is not chosen:
                row.sampler = decoder.distribution(law)
        with Progress(len(running), call.progress) as bar:
            for _, step in decoder.moves(running, batch_size):
                bar.advance(0 if step is None else len(step.tokens), step is None or step.output.done)
            groups = [rows[start : start + n] for start in range(0, len(rows), n)]
            return Validation(self, chosen, call, bar).results(groups, prompts, grammars)

    def pieces(self, prompt: Any, call: Call) -> Any:
        """The text of a call in pieces; see `Writing.stream`."""
        entries = self.entries(prompt, call)
        chosen, (one, constraint, other, key) = entries.sampler, entries.single()
        if not isinstance(chosen, Local):
            raise OptionError(f"{type(chosen).__name__} draws whole texts; streams need a Local.")
        (row,) = self.rows(
            one, constraint, 1, key, call.max_tokens, other,
            logprobs=call.logprobs, drafter=call.drafter, stop=call.stop, **call.chat,
        )  # fmt: skip
        if row.preamble is not None:
            row.preamble.listener = call.on_reasoning
        pieces = self._stream(row, constraint, self.decoder(chosen, 1, drafter=call.drafter), call)
        return Partials(pieces, constraint, call.on_field) if call.partial else TextStream(pieces)

    def messages(self, prompt: Any, grammar: Constraint) -> list[Any] | None:
        """The chat messages of a prompt, with everything that is added to them; None where it is no chat."""
        return self._prompts.messages(prompt, grammar)

    def prompt_ids(
        self,
        prompt: Any,
        grammar: Any = None,
        *,
        thinking: Thinking | bool | int | None = None,
        chat_options: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """The ids that the model reads for a prompt, its prompt format included."""
        return self.started(prompt, to_constraint(grammar), thinking, chat_options)[0]

    def started(
        self,
        prompt: Any,
        grammar: Constraint,
        thinking: Thinking | bool | int | None,
        chat_options: Mapping[str, Any] | None,
        limits: Limits | None = None,
    ) -> tuple[list[int], PromptPreamble | None]:
        """The ids of a prompt, and the preamble of its texts."""
        template_options = {**self._prompts.chat_options, **(chat_options or {})}
        mode = thinking_of(thinking, template_options)
        options, reason = {**self.thoughts.options(mode), **template_options}, self.thoughts.reason(mode)
        ids, start = self.thoughts.preamble(
            self._prompts.read(prompt, grammar, options, reason), grammar, mode, limits
        )
        return ([*ids, *self._prompts.lead_in(prompt, grammar)] if start is None else ids), start

    def show(
        self,
        prompt: Any,
        grammar: Any = None,
        *,
        raw: bool | None = None,
        system: str | None = None,
        show_schema: ShowSchema | None = None,
    ) -> ReadPrompt:
        """What the model reads for a prompt: printed, it is the text; `ids` are its tokens.

        Arguments and errors are those of `sample`.
        """
        (one,) = self.framed([prompt], raw, system, show_schema)
        return self.shown(self.prompt_ids(one, grammar))

    def language_model(self) -> LanguageModel:
        """The model's distributions for the samplers of `tokenform.decoding.aligned`, with its own cache."""
        eos, size = self.vocabulary.eos, self.vocabulary.size
        return BackboneLM(self.model, eos=eos, size=size, prompts=self._decoders.prompts)

    def problem(
        self,
        prompt: Any,
        grammar: Any = None,
        *,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        sampler: AlignedSampler | None = None,
        model: LanguageModel | None = None,
        validators: bool = True,
    ) -> Problem:
        """What a faithful sampler draws from: `sampler.sample(problem, n)`.  Reasoning is switched off.

        Its tries are made by `Trie(problem)`, saved, and loaded by `load_trie(path, problem)`.

        Args:
            prompt, grammar, max_tokens, sampler: as for `sample`; one prompt and one grammar.
            model: a `language_model` to share its cache; None makes one.
            validators: whether a type's Python validators are part of the constraint.
        Raises:
            BudgetTooSmall, PromptTooLong, OptionError, ModelError, VocabularyError: as `sample` does.
        """
        chosen = self.chosen(sampler)
        if not isinstance(chosen, AlignedSampler):
            raise OptionError("Local has no problem; give ASAp, CARS, AWRS, SMC, MCMC or Beam.")
        constraint = to_constraint(grammar)
        ids, _ = self.started(prompt, constraint, False, None)
        budget = self._prompts.token_budget(ids, max_tokens)
        constraint_automaton = compiled(constraint, self.vocabulary, validators=validators)
        check_shortest(constraint_automaton.distance(constraint_automaton.start, budget), budget)
        return chosen.bind(
            model or self.language_model(), constraint_automaton, ids, budget, encode=self._decoders.encode
        )

    def _stream(
        self, row: Row, grammar: Constraint, decoder: Decoder, call: Call
    ) -> Yields[str, None, Result]:
        pieces, options = row.pieces(), {"max_tokens": row.max_tokens}
        with span_of(self, row.prompt, grammar, options, current=False) as ended:
            for _, token in decoder.run([row], 1):
                piece = pieces.finish() if token is None else pieces.feed(self._tokens[token])
                if piece:
                    yield piece
            if row.output.error is not None:
                raise row.output.error
            result: Result = ended(self.result(row, grammar, keep_invalid=call.on_invalid == "return"))
        if call.on_length == "raise" and result.reason == "length":
            raise too_long(result)
        return result

    def chosen(self, sampler: AnySampler | None) -> AnySampler:
        """The sampler of a call; the generator's own for None."""
        return self.check_sampler(drawn_with(sampler, self.sampler))

    def check_sampler(self, chosen: AnySampler) -> AnySampler:
        """Refuses a sampler that can't draw from this generator's mixture."""
        if isinstance(chosen, AlignedSampler) and (self.transforms or not self.mixing.plain):
            raise OptionError(
                f"transforms, mixtures and penalties are for Local; give {type(chosen).__name__} its own "
                "temperature, truncation or potential."
            )
        return chosen

    def decoder(self, chosen: Local, rows: int, *, drafter: Any = OWN, joining: bool = False) -> Decoder:
        """A decoder; see `Decoders.make`."""
        drafter = self.drafter if drafter is OWN else drafter
        return self._decoders.make(self, chosen, rows, drafter=drafter, joining=joining)

    def spell(self, text: bytes) -> list[int]:
        """Bytes as the model's tokenizer writes them; longest match without one."""
        encode = self._decoders.encode
        return self.vocabulary.greedy(text) or [] if encode is None else encode(text)

    def rows(
        self,
        prompt: Any,
        grammar: Constraint,
        n: int,
        seed: int | None,
        max_tokens: int,
        companion_prompt: Any = None,
        limits: Limits | None = None,
        logprobs: bool = True,
        drafter: Any = OWN,
        stop: str | Sequence[str] | None = (),
        thinking: Thinking | bool | int | None = None,
        chat_options: Mapping[str, Any] | None = None,
    ) -> list[Row]:
        """The n rows of one prompt, as `sample` would run them.

        Args:
            limits: of the grammar's automaton; None: the process's limits.
            The others, and the errors, are those of `sample`.
        """
        if isinstance(grammar, Condition):
            raise OptionError(
                "Local needs the mask of every step, which a predicate, or a grammar & a language, has not; "
                "take sampler=tf.SMC() or tf.AWRS() (many draws), or tf.CARS() (exact ones)."
            )
        automaton = (grammar := grammar.for_writing).compile(self.vocabulary, limits=limits)
        mode = thinking_of(thinking)
        ids, start = self.started(prompt, grammar, thinking, chat_options, limits)
        budget = self._prompts.token_budget(ids, max_tokens)
        companion_ids = (
            []
            if companion_prompt is None
            else self.started(companion_prompt, grammar, thinking, chat_options)[0]
        )
        budget = min(budget, self._prompts.token_budget(companion_ids or ids, max_tokens))
        budget = min(budget, self.mixing.token_budget(len(companion_ids or ids), max_tokens))
        key = fresh_seed() if seed is None else seed
        plain = (self.drafter if drafter is OWN else drafter) is None
        hints = None if plain else Hints(grammar, self.vocabulary, limits)
        try:
            check_budget(automaton, budget)
        except BudgetTooSmall as error:
            if start is not None and start.in_thought:
                raise start.refused(budget, error.least, mode) from None
            raise
        preambles = [None if start is None else start.preamble(automaton, budget, mode) for _ in range(n)]
        shared: Any = {
            "seed": key, "hints": hints, "logprobs": logprobs, "companion_ids": companion_ids,
            "bare": (bare := is_bare(grammar)), "stop": ends_of(stop, grammar),
            "passages": passages(prompt) if bare or has_patterns(grammar) else (),
        }  # fmt: skip
        return [
            Row(ids, None, automaton, budget, number=number, preamble=preamble, **shared)
            for number, preamble in enumerate(preambles)
        ]

    def result(self, row: Row, grammar: Constraint, *, keep_invalid: bool = False) -> Result:
        """The result of a row that has ended; see `result_of`."""
        origin, prompt = Origin(self, row.prompt), self.shown(row.prompt[: row.read])
        return result_of(row, grammar, self._tokens, origin=origin, prompt=prompt, keep_invalid=keep_invalid)
