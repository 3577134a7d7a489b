"""`generate`, `sample` and `stream` of a generator, with the types of their results.

Purpose: the public methods of `Generator`, apart from its work; all take the keywords of `options.Options`.
Invariant: `generate` returns one result for one text and lists for several; `sample` returns a list for each
prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from typing_extensions import TypeForm, Unpack

from tokenform.decoding.options import AnyOptions, Call, Options, StreamOptions, with_keywords
from tokenform.decoding.partial import Partials, TextStream
from tokenform.decoding.prompts import Prompt
from tokenform.decoding.results import Result, T

Function = Callable[..., Any]
"""Stands for its arguments by name."""
Many = list[str] | list[list[int]]
"""Prompts; a list of chats is typed as `Any`."""


class Writing:
    """The calls of a generator, over `write` and `pieces`."""

    def write(self, prompt: Any, call: Call, *, listed: bool = False) -> Any:
        """The texts of a call."""
        raise NotImplementedError

    def pieces(self, prompt: Any, call: Call) -> Any:
        raise NotImplementedError

    @overload
    def generate(  # type: ignore[overload-overlap]
        self, prompt: Many, schema: TypeForm[T], *, n: Literal[1] = 1, **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    @overload
    def generate(
        self, prompt: Many, schema: TypeForm[T], *, n: int, **options: Unpack[Options]
    ) -> list[list[Result[T]]]: ...
    @overload
    def generate(  # type: ignore[overload-overlap]
        self, prompt: Prompt, schema: TypeForm[T], *, n: Literal[1] = 1, **options: Unpack[Options]
    ) -> Result[T]: ...
    @overload
    def generate(  # type: ignore[overload-overlap]
        self, prompt: Prompt, schema: TypeForm[T], *, n: int, **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    @overload
    def generate(
        self, prompt: Prompt, schema: Function, *, n: Literal[1] = 1, **options: Unpack[Options]
    ) -> Result[dict[str, Any]]: ...
    @overload
    def generate(
        self, prompt: str, schema: Any = None, *, n: Literal[1] = 1, **options: Unpack[AnyOptions]
    ) -> Result: ...
    @overload
    def generate(
        self, prompt: Many, schema: Any = None, *, n: Literal[1] = 1, **options: Unpack[AnyOptions]
    ) -> list[Result]: ...
    @overload
    def generate(
        self, prompt: Any, schema: Any = None, *, n: int = 1, **options: Unpack[AnyOptions]
    ) -> Any: ...
    @with_keywords()
    def generate(self, prompt: Any, schema: Any = None, *, n: int = 1, **options: Any) -> Any:
        """Write text that a constraint accepts.

        Args:
            prompt: text, chat messages or token ids; or a list of prompts.  For a tokenizer with a chat
                template a text is a user's message.
            schema: the constraint: a Python type or function (the value is an instance, or its arguments), a
                JSON Schema (mapping, boolean, JSON text), a grammar, tools (`tf.tools`), or a `predicate`,
                for samplers other than `Local`; None for any text.  Or a list of them, which gives a list of
                results: lists of prompts and of constraints are paired; a single prompt or constraint beside
                a list serves all entries.  One of several texts is `choices`.
            choices: in place of a schema, the texts to choose from.
            regex: in place of a schema, a pattern that the whole text matches.
            n: texts for each prompt; with a temperature of 0 they are equal.
            seed: key of the draws: the same seed gives the same texts, whatever else is in the batch.  Equal
                prompts of a list have equal texts; None draws a fresh seed for each prompt.  Or a list of
                seeds, one for each prompt.
            max_tokens: most tokens of a text (end-of-text excluded); texts are complete within it.
            temperature, top_k, top_p, min_p: as for `Local`, in place of the generator's; 0 is greedy.
            sampler: in place of the generator's own: `Local`, ASAp, CARS, AWRS, SMC, MCMC or Beam, with its
                own temperature.
            drafter: in place of the generator's own; None is plain decoding.  It changes no text.
            batch_size: most sequences that run together, in place of the generator's.
            stop: texts that end the text where it is complete; it is returned without them
                (`Result.stopped`).  They cut no call and no other text that the constraint would not accept,
                and have no part in JSON documents.
            on_error: how an error of one text affects a batch: "raise" raises it when all other texts are
                written (they are in its attribute `results`, with None in its place); "return" puts it in
                the place of its result.
            on_invalid: what to do with a text that validators of the type refuse: "resample" draws another,
                with a temperature from the distribution given that they accept; "return" returns it, with
                `Result.error`; "raise" makes it an error.
            feedback: show the model the validators' errors in a second turn, and let it write anew, instead
                of drawing by rejection.
            max_tries: most further attempts at a text that validators refuse, after which it is an error;
                None: 50, with `feedback` 3 turns.
            max_seconds: most seconds for all such attempts of a call; None: any time.
            on_length: what to do with a text that `max_tokens` cut: "return" returns it, complete, with the
                reason "length" and the values that the budget made in `Result.cut`; "raise" makes it an
                error, which has it as `result`.
            logprobs: whether to report the log-probabilities of a `Local`'s tokens.  Without them, where the
                grammar allows few tokens only their logits are computed, which over a large vocabulary saves
                most of a step; the texts are the same.
            progress: show a bar; None shows one for long batches on a terminal.
            companion_prompt: what the mixture's companion reads in place of the prompt; or a list of them.
            raw, system, show_schema: how the prompt is shown, see `PromptOptions`; None: the generator's.
            thinking: the reasoning block before the text, of a model that has one; it is no part of the text
                (`Result.reasoning`), and the grammar does not bind it.  None: prompt and model decide, within
                three quarters of `max_tokens`; True: there is one; False: there is none, and the prompt says
                so; a number: there is one of at most so many tokens.
            reason: reason first, even if the model has no reasoning block: then in free text
                (`Result.reasoning`), and the answer follows in the same turn.  True, a largest number of
                tokens, or a `Reason`.  Reasoning, bridge and text share `max_tokens`.
            chat_options: arguments of the tokenizer's chat template, beside the generator's.
        Returns:
            A `Result`; a list of n for n > 1; for a list of prompts or constraints, a list of these.
        Raises:
            BudgetTooSmall: no accepted text has so few tokens; or see `on_length`.
            InvalidType: validators refuse a text, see `on_invalid`; it has the text and its value so far.
            UnknownOption: there is no such keyword; the message names the nearest.
            PromptTooLong, OptionError, ModelError, SamplingError, VocabularyError.
            An exception of a validator other than ValueError and AssertionError, as it is.

        >>> import tokenform as tf
        >>> tf.Generator().generate("The order has been paid.", choices=["new", "paid"]).text
        'paid'
        """
        return self.write(prompt, Call.of(schema, {"n": n, **options}))

    __call__ = generate

    @overload
    def sample(
        self, prompt: Many, schema: TypeForm[T], *, n: int = 1, **options: Unpack[Options]
    ) -> list[list[Result[T]]]: ...
    @overload
    def sample(
        self, prompt: Many, schema: Any = None, *, n: int = 1, **options: Unpack[AnyOptions]
    ) -> list[list[Result]]: ...
    @overload
    def sample(
        self, prompt: Any, schema: list[Any] | tuple[Any, ...], *, n: int = 1, **options: Unpack[Options]
    ) -> list[list[Result]]: ...
    @overload
    def sample(  # type: ignore[overload-overlap]
        self, prompt: Prompt, schema: TypeForm[T], *, n: int = 1, **options: Unpack[Options]
    ) -> list[Result[T]]: ...
    @overload
    def sample(
        self, prompt: Prompt, schema: Function, *, n: int = 1, **options: Unpack[Options]
    ) -> list[Result[dict[str, Any]]]: ...
    @overload
    def sample(
        self, prompt: Prompt, schema: Any = None, *, n: int = 1, **options: Unpack[AnyOptions]
    ) -> list[Result]: ...
    @with_keywords()
    def sample(self, prompt: Any, schema: Any = None, *, n: int = 1, **options: Any) -> Any:
        """n texts for a prompt; the keywords and errors are those of `generate`.

        Returns:
            list[Result] of length n, or one such list for each entry of a batch.
        """
        return self.write(prompt, Call.of(schema, {"n": n, **options}), listed=True)

    @overload
    def stream(
        self,
        prompt: Prompt,
        schema: TypeForm[T],
        *,
        partial: Literal[True],
        **options: Unpack[StreamOptions],
    ) -> Partials[T]: ...
    @overload
    def stream(
        self, prompt: Prompt, schema: Any = None, *, partial: Literal[True], **options: Unpack[StreamOptions]
    ) -> Partials: ...
    @overload
    def stream(
        self,
        prompt: Prompt,
        schema: Any = None,
        *,
        partial: Literal[False] = False,
        **options: Unpack[StreamOptions],
    ) -> TextStream: ...
    @with_keywords(streamed=True)
    def stream(self, prompt: Any, schema: Any = None, *, partial: bool = False, **options: Any) -> Any:
        """Write one text for one prompt, in pieces as they come.

        The keywords and errors are those of `generate`, except that no text is written again, and:

        Args:
            partial: yield the value so far instead of the text (`Partials`), of the requested type.
            on_field: with `partial`, functions by JSON Pointer, called with the values of complete fields.
            on_reasoning: called with the characters of the reasoning before the text as they come.
        Returns:
            An iterator of text of whole characters; the pieces joined are the text.  When it has ended, its
            `result` is the `Result`.
        """
        return self.pieces(prompt, Call.of(schema, {"partial": partial, **options}, streamed=True))
