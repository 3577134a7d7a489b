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
from typing import Any, Literal, overload

from typing_extensions import TypeForm, Unpack

from tokenform.decoding.aligned.backbone_lm import BackboneLM
from tokenform.decoding.aligned.conditions import compiled
from tokenform.decoding.aligned.problem import Problem
from tokenform.decoding.aligned.protocols import LanguageModel
from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.alternatives import Origin
from tokenform.decoding.calls import (
    DEFAULT_MAX_TOKENS,
    AnySampler,
    Constraint,
    SampleOptions,
    StreamOptions,
    check_counts,
    check_reactions,
    check_varied,
    ending_at,
    given_back,
    pair,
    pair_one,
    seeds_of,
    texts_of,
)
from tokenform.decoding.configuration import configured_sampler, context_length, read_vocabulary
from tokenform.decoding.decoder import Decoder
from tokenform.decoding.decoders import Decoders
from tokenform.decoding.draws import Transform
from tokenform.decoding.feedback import check_answerable
from tokenform.decoding.keyed_random import fresh_seed
from tokenform.decoding.mixing import Mixing
from tokenform.decoding.partial import Partials
from tokenform.decoding.pieces import TextPieces
from tokenform.decoding.progress import Progress
from tokenform.decoding.prompts import (
    Prompt,
    PromptFormat,
    PromptOptions,
    PromptReader,
    ReadPrompt,
    ShowSchema,
    framed,
)
from tokenform.decoding.result_of import result_of
from tokenform.decoding.results import Result, T, too_long
from tokenform.decoding.row import Row, check_room, check_shortest
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.backbone import check_model
from tokenform.decoding.speculative.drafters import Hints
from tokenform.decoding.speculative.policies import Policy
from tokenform.decoding.speculative.targets import Mixture, Penalties
from tokenform.decoding.speculative.verifiers import Verifier
from tokenform.decoding.thinking import Start, Thinking, Thoughts, thinking_of
from tokenform.decoding.tracing import span_of, traced
from tokenform.decoding.validated import Again, law_of, settled
from tokenform.decoding.weighted import all_weighted
from tokenform.engine import Limits, Vocabulary
from tokenform.errors import (
    BudgetTooSmall,
    DrafterError,
    ModelError,
    OptionError,
    TokenformError,
)
from tokenform.frontends import Condition, to_constraint


class Generator:
    """Writes texts with a causal language model.

    Args:
        model: a Hugging Face causal language model (or anything called like one), on any device.
        tokenizer: its tokenizer, or a `Vocabulary` where prompts are token ids.
        sampler: how texts are drawn: `Local`, token by token; or a sampler of weighted or exact draws (ASAp,
            CARS, AWRS, SMC, MCMC, Beam); or "model": temperature and truncation that the model's
            generation_config recommends.  Greedy where none is given.
        drafter: guesses tokens that are then scored together, which changes no text: "auto" looks up what
            the grammar forces and what stood in the text before; None is plain decoding; or a drafter of
            `tokenform.drafters`.  Where "auto" can't run a model exactly, decoding is plain.
        verifier: the rule by which guesses are accepted; None keeps each seed's text.
        policy: makes the policy of a call (size and shape of drafts); None scores what pays.
        transforms: functions (tokens so far, logits [V]) -> logits [V], applied before the mask.
        mixture: of the model and a second model or prompt, one of `tokenform.targets`: `Contrastive`,
            `ContextAware`, `Safety`, `Anchored`.
        companion: the mixture's second model, of the same vocabulary; None is the model itself, which then
            reads the second prompt (`companion_prompt=` of each call).
        penalties: `tokenform.targets.Penalties` on tokens that the text has already.
        batch_size: most sequences that run together.
        prompt_cache: most bytes of keys and values of prompts that are kept, on the model's device, for later
            calls whose prompts begin alike; 0 keeps none.  A change of the weights or adapters, or of which
            hooks there are, empties it.
        compile: run steps of decoding as compiled passes of fixed shapes, on a GPU as CUDA graphs, which pays
            for many texts: each shape is compiled for seconds when it first comes up.  Texts are the same up
            to the model's own rounding; a model that can't be compiled runs as it is, with a warning.
        format_prompt: for models with a prompt format of their own: (prompt, grammar) -> text.
        chat_options: arguments of the tokenizer's chat template, as `{"enable_thinking": False}`.
        raw, system, show_schema: how prompts are shown, see `PromptOptions`; each call may say otherwise.
    Raises:
        ModelError, VocabularyError: the model or its tokenizer can't be used.

    Example, of a program that writes many texts on a GPU::

        writer = tf.Generator(model, tokenizer, batch_size=32, compile=True)
        results = writer.sample(prompts, tf.json_schema(schema))
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        sampler: AnySampler | Literal["model"] | None = None,
        drafter: Any = "auto",
        verifier: Verifier | None = None,
        policy: Callable[[], Policy] | None = None,
        transforms: Sequence[Transform] = (),
        mixture: Mixture | None = None,
        companion: Any = None,
        penalties: Penalties | None = None,
        batch_size: int = 16,
        prompt_cache: int = 256 << 20,
        compile: bool = False,
        format_prompt: PromptFormat | None = None,
        chat_options: Mapping[str, Any] | None = None,
        raw: bool = False,
        system: str | None = None,
        show_schema: ShowSchema = "auto",
    ) -> None:
        if tokenizer is None:
            raise ModelError("a model needs its tokenizer; pass tokenizer=, or a Vocabulary for bare ids.")
        if isinstance(drafter, str) and drafter != "auto":
            raise DrafterError(f"drafter={drafter!r} is not known; choose 'auto', None or a drafter.")
        if drafter is not None and drafter != "auto" and not hasattr(drafter, "session"):
            raise DrafterError(f"{type(drafter).__name__} is no drafter; see tokenform.drafters.")
        if verifier is not None and not isinstance(verifier, Verifier):
            known = "tokenform.decoding.speculative.verifiers"
            raise OptionError(f"{type(verifier).__name__} is no rule of acceptance; see {known}.")
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
        self.sampler = sampler if sampler is not None else Local(temperature=0.0)
        self.batch_size = batch_size
        self.transforms = tuple(transforms)
        self.mixing = Mixing(mixture, companion, penalties)
        self.drafter, self.verifier, self.policy = drafter, verifier, policy
        self._tokens: list[bytes] = list(self.vocabulary.tokens)
        self._decoders = Decoders(model, self.vocabulary, self.tokenizer, prompt_cache, compile)
        self.thoughts = Thoughts(self.tokenizer, self.vocabulary)
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

    @overload
    def sample(
        self, prompt: list[str] | list[list[int]], grammar: TypeForm[T], **options: Unpack[SampleOptions]
    ) -> list[list[Result[T]]]: ...
    @overload
    def sample(
        self, prompt: list[str] | list[list[int]], grammar: Any = None, **options: Unpack[SampleOptions]
    ) -> list[list[Result]]: ...
    @overload
    def sample(
        self, prompt: Any, grammar: list[Any] | tuple[Any, ...], **options: Unpack[SampleOptions]
    ) -> list[list[Result]]: ...
    @overload
    def sample(  # type: ignore[overload-overlap]
        self, prompt: Prompt, grammar: TypeForm[T], **options: Unpack[SampleOptions]
    ) -> list[Result[T]]: ...
    @overload
    def sample(
        self, prompt: Prompt, grammar: Callable[..., Any], **options: Unpack[SampleOptions]
    ) -> list[Result[dict[str, Any]]]: ...
    @overload
    def sample(
        self, prompt: Prompt, grammar: Any = None, **options: Unpack[SampleOptions]
    ) -> list[Result]: ...
    @traced
    def sample(
        self,
        prompt: Any,
        grammar: Any = None,
        *,
        n: int = 1,
        seed: int | Sequence[int] | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        sampler: AnySampler | None = None,
        progress: bool | None = None,
        companion_prompt: Any = None,
        stop: str | Sequence[str] = (),
        on_error: str = "raise",
        on_invalid: str = "resample",
        feedback: bool = False,
        max_tries: int | None = None,
        max_seconds: float | None = None,
        on_length: str = "return",
        logprobs: bool = True,
        raw: bool | None = None,
        system: str | None = None,
        show_schema: ShowSchema | None = None,
        thinking: Thinking | bool | int | None = None,
        chat_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """Write n texts for a prompt.

        Args:
            prompt: text, chat messages or token ids; or a list of prompts.  For a tokenizer with a chat
                template a text is a user's message.
            grammar: a grammar, schema or type; None for any text; a `predicate`, for samplers other than
                `Local`; or a list of them.  A list of prompts and a list of grammars are paired; one prompt
                or grammar beside a list serves each entry.
            n: texts for each prompt.
            seed: key of the draws: the same seed gives the same texts, whatever else is in the batch.  Equal
                prompts of a list have equal texts; None draws a fresh seed for each prompt.  Or a list of
                seeds, one for each prompt.
            max_tokens: most tokens of a text (end-of-text excluded); texts are complete within it.
            sampler: in place of the generator's own, for this call.
            progress: show a bar; None shows one for long batches on a terminal.
            companion_prompt: what the mixture's companion reads in place of the prompt; or a list of them.
            stop: without a grammar: texts at which a text ends; it is given back without them.
            on_error: what an error of one text means for a batch: "raise" raises it when all other texts are
                written (they are in its attribute `results`, with None in its place); "return" puts it in
                the place of its result.
            on_invalid: what becomes of a text that validators of the type refuse: "resample" draws another,
                with a temperature from the distribution given that they accept; "return" gives it back, with
                `Result.error`; "raise" makes it an error.
            feedback: show the model what validators refuse and why, as a second turn, and let it write anew,
                instead of drawing by rejection.
            max_tries: most further attempts at a text that validators refuse, after which it is an error;
                None: 50, with `feedback` 3 turns.
            max_seconds: most seconds for all such attempts of a call; None: any time.
            on_length: what becomes of a text into which `max_tokens` cut: "return" gives it back, complete,
                with the reason "length" and what the budget made of it in `Result.cut`; "raise" makes it an
                error, which has it as `result`.
            logprobs: whether the log-probabilities of a `Local`'s tokens are told.  Without, where the
                grammar allows few tokens only their logits are computed, which over a large vocabulary saves
                most of a step; the texts are the same.
            raw, system, show_schema: how the prompt is shown, see `PromptOptions`; None: as the generator has
                it.
            thinking: of a model that thinks, the thought before the text, which is no part of it
                (`Result.reasoning`) and which the grammar does not bind: None: as the prompt and the model
                have it, within three quarters of `max_tokens`; True: there is one; False: there is none, and
                the prompt is written so; a number: there is one of so many tokens at most.
            chat_options: arguments of the tokenizer's chat template, beside the generator's.
        Returns:
            list[Result] of length n, or one such list for each entry of a batch.
        Raises:
            BudgetTooSmall: no accepted text has so few tokens; or see `on_length`.
            InvalidType: validators refuse a text, see `on_invalid`; it has the text and its value so far.
            PromptTooLong, OptionError, ModelError, SamplingError, VocabularyError.
            What a validator raises that is neither ValueError nor AssertionError, as it is.
        """
        check_counts(n=n, max_tokens=max_tokens, max_tries=1 if max_tries is None else max_tries)
        again = Again(on_invalid, feedback, max_tries, max_seconds, stop)
        check_reactions(on_error, on_invalid, on_length)
        prompts, grammars, batched = pair(prompt, ending_at(stop, grammar), on_error)
        prompts = self.framed(prompts, raw, system, show_schema)
        chosen, seeds = self.chosen(sampler), seeds_of(seed, len(prompts))
        check_varied(n, chosen)
        for one in prompts if feedback else ():
            check_answerable(one)
        if isinstance(chosen, AlignedSampler):
            entries = zip(prompts, grammars, seeds, strict=True)
            asked = [(one, made, key) for one, made, key in entries if not isinstance(made, TokenformError)]
            told = {"thinking": thinking, "chat_options": chat_options}
            drawn = all_weighted(self, chosen, asked, n, max_tokens, progress, on_invalid, told)
            for (one, constraint, _), results in zip(asked, drawn, strict=True):
                ids = self.prompt_ids(one, constraint, thinking=thinking, chat_options=chat_options)
                read = self._prompts.shown(ids)
                for result in results:
                    if isinstance(result, Result):
                        result.prompt = read
            going = iter(drawn)
            every = [[made] * n if isinstance(made, TokenformError) else next(going) for made in grammars]
            return given_back(every, batched, on_error, on_length)
        rows: list[Row | TokenformError] = []
        for one, constraint, key, other in zip(
            prompts, grammars, seeds, self.mixing.prompts(companion_prompt, len(prompts)), strict=True
        ):
            try:
                if isinstance(constraint, TokenformError):
                    raise constraint
                rows += self.rows(
                    one, constraint, n, key, max_tokens, other,
                    logprobs=logprobs, thinking=thinking, chat_options=chat_options,
                )  # fmt: skip
            except TokenformError as error:
                if on_error == "raise":
                    raise
                rows += [error] * n
        running = [row for row in rows if isinstance(row, Row)]
        decoder = self.decoder(chosen, min(max(len(running), 1), self.batch_size))
        for row, constraint in zip(rows, (one for one in grammars for _ in range(n)), strict=True):
            if isinstance(row, Row) and (law := law_of(chosen, constraint, again)) is not chosen:
                row.distribution = decoder.distribution(law)
        with Progress(len(running), progress) as bar:
            for _, token in decoder.run(running, self.batch_size):
                bar.advance(token)
            groups = [rows[start : start + n] for start in range(0, len(rows), n)]
            written = settled(self, groups, prompts, grammars, chosen, again, bar)
        return given_back(written, batched, on_error, on_length)

    @overload
    def stream(
        self,
        prompt: Prompt,
        grammar: TypeForm[T],
        *,
        partial: Literal[True],
        **options: Unpack[StreamOptions],
    ) -> Partials[T]: ...
    @overload
    def stream(
        self, prompt: Prompt, grammar: Any = None, *, partial: Literal[True], **options: Unpack[StreamOptions]
    ) -> Partials: ...
    @overload
    def stream(
        self,
        prompt: Prompt,
        grammar: Any = None,
        *,
        partial: Literal[False] = False,
        **options: Unpack[StreamOptions],
    ) -> Yields[str, None, Result]: ...
    def stream(
        self,
        prompt: Any,
        grammar: Any = None,
        *,
        seed: int | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        sampler: AnySampler | None = None,
        companion_prompt: Any = None,
        stop: str | Sequence[str] = (),
        on_length: str = "return",
        partial: bool = False,
        on_field: Mapping[str, Callable[[Any], Any]] | None = None,
        logprobs: bool = True,
        raw: bool | None = None,
        system: str | None = None,
        show_schema: ShowSchema | None = None,
        thinking: Thinking | bool | int | None = None,
        chat_options: Mapping[str, Any] | None = None,
        on_reasoning: Callable[[str], Any] | None = None,
    ) -> Any:
        """Write one text for one prompt, in pieces as they come.

        Arguments and errors are those of `sample`, and:

        Args:
            partial: give the value so far instead of the text (`Partials`), of the type that was asked for.
            on_field: with `partial`, functions by JSON Pointer that get the values of complete fields.
            on_reasoning: gets the characters of the thought before the text as they come.
        Yields:
            Text of whole characters; the pieces joined are the text.
        Returns:
            The `Result`, as the generator's return value.
        """
        if on_field is not None and not partial:
            raise OptionError("on_field= is for streams of values; add partial=True.")
        check_counts(max_tokens=max_tokens)
        check_reactions(on_length=on_length)
        one, constraint = pair_one(prompt, ending_at(stop, grammar), "stream")
        (one,) = self.framed([one], raw, system, show_schema)
        chosen = self.chosen(sampler)
        if not isinstance(chosen, Local):
            raise OptionError(f"{type(chosen).__name__} draws whole texts; streams need a Local.")
        (other,) = self.mixing.prompts(companion_prompt, 1)
        (key,) = seeds_of(seed, 1)
        (row,) = self.rows(
            one, constraint, 1, key, max_tokens, other,
            logprobs=logprobs, thinking=thinking, chat_options=chat_options,
        )  # fmt: skip
        if row.lead is not None:
            row.lead.listener = on_reasoning
        pieces = self._stream(row, constraint, self.decoder(chosen, 1), stop, on_length)
        return Partials(pieces, constraint, on_field) if partial else pieces

    def messages(self, prompt: Any, grammar: Constraint) -> list[Any] | None:
        """The chat that a prompt stands for, with all that is put into it; None where it is none."""
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
    ) -> tuple[list[int], Start | None]:
        """The ids of a prompt, and what is written before its texts."""
        given = {**self._prompts.chat_options, **(chat_options or {})}
        told = thinking_of(thinking, given)
        ids = self._prompts.read(prompt, grammar, {**self.thoughts.options(told), **given})
        return self.thoughts.lead(ids, grammar, told, limits)

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
        return self._prompts.shown(self.prompt_ids(one, grammar))

    def framed(
        self, prompts: Sequence[Any], raw: bool | None, system: str | None, show_schema: ShowSchema | None
    ) -> list[Any]:
        """Prompts with the options of their call; see `sample`."""
        return framed(prompts, self._prompts.options, raw, system, show_schema)

    @property
    def own_format(self) -> bool:
        """Whether the model has a prompt format of its own, in place of a chat template."""
        return self._prompts.own_format

    def language_model(self) -> LanguageModel:
        """The model as the samplers of `tokenform.decoding.aligned` ask it, with a cache of its own."""
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
        """What a faithful sampler draws from: `sampler.sample(problem, n)` gives all that it knows.  A model
        that thinks is told not to.

        Tries are made for it (`Trie(problem)`), saved, and loaded again (`load_trie(path, problem)`).

        Args:
            prompt, grammar, max_tokens, sampler: as for `sample`; one prompt and one grammar.
            model: a `language_model` to share its cache; None makes one.
            validators: those that a type has in Python are part of the constraint.
        Raises:
            BudgetTooSmall, PromptTooLong, OptionError, ModelError, VocabularyError: as `sample` does.
        """
        chosen = self.chosen(sampler)
        if not isinstance(chosen, AlignedSampler):
            raise OptionError("Local has no problem; give ASAp, CARS, AWRS, SMC, MCMC or Beam.")
        constraint = to_constraint(grammar)
        ids, _ = self.started(prompt, constraint, False, None)
        budget = self._prompts.room(ids, max_tokens)
        known = compiled(constraint, self.vocabulary, validators=validators)
        check_shortest(known.distance(known.start, budget), budget)
        return chosen.bind(model or self.language_model(), known, ids, budget, encode=self._decoders.encode)

    def _stream(
        self,
        row: Row,
        grammar: Constraint,
        decoder: Decoder,
        stop: str | Sequence[str] = (),
        on_length: str = "return",
    ) -> Yields[str, None, Result]:
        pieces, asked = TextPieces(texts_of(stop)), {"max_tokens": row.budget}
        with span_of(self, row.prompt, grammar, asked, current=False) as ended:
            for _, token in decoder.run([row], 1):
                piece = pieces.finish() if token is None else pieces.feed(self._tokens[token])
                if piece:
                    yield piece
            if row.output.error is not None:
                raise row.output.error
            result: Result = ended(self.result(row, grammar))
        if on_length == "raise" and result.reason == "length":
            raise too_long(result)
        return result

    def chosen(self, sampler: AnySampler | None) -> AnySampler:
        """The sampler of a call; the generator's own for None."""
        chosen = sampler if sampler is not None else self.sampler
        if not isinstance(chosen, Local | AlignedSampler):
            raise OptionError(
                f"{type(chosen).__name__} is no sampler; pass Local, ASAp, CARS, AWRS, SMC, MCMC or Beam."
            )
        if isinstance(chosen, AlignedSampler) and (self.transforms or not self.mixing.plain):
            raise OptionError(
                f"transforms, mixtures and penalties are for Local; give {type(chosen).__name__} its own "
                "temperature, truncation or potential."
            )
        return chosen

    def decoder(self, chosen: Local, rows: int, *, joining: bool = False) -> Decoder:
        """What runs rows; see `Decoders.make`."""
        return self._decoders.make(self, chosen, rows, joining=joining)

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
        other: Any = None,
        limits: Limits | None = None,
        logprobs: bool = True,
        thinking: Thinking | bool | int | None = None,
        chat_options: Mapping[str, Any] | None = None,
    ) -> list[Row]:
        """What is to be written for one prompt: n rows, as `sample` would run them.

        Args:
            limits: of the grammar's automaton; None: as it is for the process.
            The others, and the errors, are those of `sample`.
        """
        if isinstance(grammar, Condition):
            raise OptionError(
                "Local needs the mask of every step, which a predicate does not have; "
                "take sampler=tf.SMC() or tf.AWRS() (many draws), or tf.CARS() (exact ones)."
            )
        automaton = (grammar := grammar.for_writing).compile(self.vocabulary, limits=limits)
        told = thinking_of(thinking)
        ids, start = self.started(prompt, grammar, thinking, chat_options, limits)
        budget = self._prompts.room(ids, max_tokens)
        second = [] if other is None else self.started(other, grammar, thinking, chat_options)[0]
        budget = min(budget, self._prompts.room(second or ids, max_tokens))
        budget = min(budget, self.mixing.room(len(second or ids), max_tokens))
        key = fresh_seed() if seed is None else seed
        hints = None if self.drafter is None else Hints(grammar, self.vocabulary, limits)
        try:
            check_room(automaton, budget)
        except BudgetTooSmall as error:
            if start is not None and start.begun:
                raise start.refused(budget, error.least, told) from None
            raise
        leads = [None if start is None else start.lead(automaton, budget, told) for _ in range(n)]
        return [
            Row(ids, automaton, budget, key, number, hints, second, logprobs=logprobs, lead=lead)
            for number, lead in enumerate(leads)
        ]

    def result(
        self, row: Row, grammar: Constraint, stop: str | Sequence[str] = (), *, refused: bool = False
    ) -> Result:
        """What a row that has ended holds; see `result_of`."""
        origin, prompt = Origin(self, row.prompt), self._prompts.shown(row.prompt[: row.read])
        return result_of(row, grammar, self._tokens, stop, origin=origin, prompt=prompt, refused=refused)
