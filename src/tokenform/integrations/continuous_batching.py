"""Constraints in transformers' continuous batching, a grammar for each request.

Purpose: `Batching` wraps a `ContinuousBatchingManager`: its `add_request` takes `grammar=` too.
Invariant: the mask comes before temperature, top-k and top-p, so that these choose among allowed tokens; a
text is complete within its request's `max_new_tokens`; a wrong grammar raises where the request is added, and
affects no other.
Complexity: a step sends one row number a request; masks stay in a table on the model's device.
Rejected: batches that are prepared before the last token is known (`use_async_batching`), and captured graphs
(`use_cuda_graph`: the table grows): both are refused.
Source: transformers 5.23, generation/continuous_batching/cb_logits_processors.py.

    config = ContinuousBatchingConfig(use_async_batching=False, use_cuda_graph=False)
    manager = model.init_continuous_batching(continuous_batching_config=config)
    batching = Batching(manager, tokenizer)
    manager.start()
    name = batching.add_request(ids, max_new_tokens=80, grammar=tf.json_schema(schema))
    print(tokenizer.decode(manager.get_result(name).generated_tokens))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenform.engine import Matcher, TokenAutomaton, Vocabulary
from tokenform.engine.packed import mask_of
from tokenform.errors import OptionError, TokenformError, extras
from tokenform.frontends import to_grammar
from tokenform.integrations.grammar_compiler import token_budget

with extras():
    import torch
    from transformers.generation.continuous_batching.cb_logits_processors import (
        ContinuousBatchingLogitsProcessor,
    )

    from tokenform.decoding.configuration import read_vocabulary
    from tokenform.masking import MaskRequest, MaskTable


class BatchedConstraint:
    """One request's automaton, and its accepted text, by the request's name."""

    def __init__(self, automaton: TokenAutomaton, max_tokens: int | None) -> None:
        self.automaton = automaton
        self.max_tokens = max_tokens
        self._matchers: dict[str, tuple[int, Matcher]] = {}

    def __deepcopy__(self, memo: Any) -> BatchedConstraint:
        return self  # copies of a request share it; their texts differ by name

    def mask_request(self, name: str, tokens: list[int], only_end: np.ndarray) -> MaskRequest:
        """The mask after the tokens."""
        accepted, matcher = self._matchers.get(name, (0, None))
        if matcher is None or accepted > len(tokens):
            accepted, matcher = 0, Matcher(self.automaton, max_tokens=self.max_tokens)
        try:
            matcher.accept_tokens(tokens[accepted:])
        except TokenformError:
            return only_end
        self._matchers[name] = len(tokens), matcher
        if matcher.is_terminated():
            return only_end
        budget = matcher.budget
        if budget is None:
            return self.automaton, matcher.state
        return self.automaton, matcher.state, budget


class BatchProcessor(ContinuousBatchingLogitsProcessor):  # type: ignore[misc,unused-ignore]
    """Masks the scores of each request by its constraint; others pass.

    Args:
        vocabulary: as wide as the model's logits.
        device: where they are.
        capacity: rows of the table of masks, more than requests in a batch.
    """

    supported_kwargs: dict[str, type] = {"constraint": BatchedConstraint}  # noqa: RUF012  (the base class has it so)
    ignored_kwargs: tuple[str, ...] = ()

    def __init__(self, vocabulary: Vocabulary, device: Any, *, capacity: int = 4096) -> None:
        self.vocabulary = vocabulary
        self._table = MaskTable(vocabulary.size, device, capacity=capacity)
        self._only_end = mask_of(vocabulary.eos, vocabulary.size)

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """No mask."""
        int32_tensor.fill_(-1)

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """The row of each request's mask, int32 [requests]."""
        return self._table.rows([self._mask_request(request.state) for request in requests_with_new_token])

    def _mask_request(self, state: Any) -> MaskRequest:
        constraint = state.logit_processor_kwargs.get("constraint")
        if constraint is None:
            return None
        # a preempted request has its first tokens among the initial ones
        before = state.initial_tokens[state._true_initial_tokens :] if state._true_initial_tokens else []
        request: MaskRequest = constraint.mask_request(
            state.request_id, [*before, *state.generated_tokens], self._only_end
        )
        return request

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Scores [N, V] with -inf where a request's constraint forbids."""
        return self._table.apply(scores, tensor_arg[: len(scores)], out=torch.empty_like(scores))


class Batching:
    """A manager whose requests may have grammars; before it is started.

    Args:
        manager: what `model.init_continuous_batching` gave.
        tokenizer: the model's, or a `Vocabulary` as wide as its logits.
    Raises:
        OptionError: the manager has started, or prepares batches ahead.
        VocabularyError: the tokenizer can't be read.
    """

    def __init__(self, manager: Any, tokenizer: Any) -> None:
        config = manager.continuous_batching_config
        if manager.batch_processor is not None:
            raise OptionError("the manager has started; make Batching before manager.start().")
        if config.use_async_batching or any(config.cuda_graph_booleans):
            raise OptionError(
                "masks need the token before: pass ContinuousBatchingConfig(use_async_batching=False, "
                "use_cuda_graph=False)."
            )
        model = manager.model
        self.manager = manager
        self.vocabulary = (
            tokenizer if isinstance(tokenizer, Vocabulary) else read_vocabulary(model, tokenizer)
        )
        processors = manager.logit_processor
        processors.logits_processor.insert(0, BatchProcessor(self.vocabulary, model.device))
        processors.tensors_required += 1
        processors.do_processing = True
        processors.supported_keys["constraint"] = BatchedConstraint

    def add_request(
        self, input_ids: list[int], *, grammar: Any = None, max_new_tokens: int | None = None, **options: Any
    ) -> str | None:
        """As the manager's, with `grammar`: a grammar, schema or type.

        Raises:
            BudgetTooSmall: no complete text, with its end-of-text token, has so few tokens.
            TokenformError: the grammar is wrong.
        """
        most = self.manager.generation_config.max_new_tokens if max_new_tokens is None else max_new_tokens
        if grammar is not None:
            automaton = to_grammar(grammar).for_writing.compile(self.vocabulary)
            budget = None if most is None else token_budget(automaton, most)
            options["constraint"] = BatchedConstraint(automaton, budget)
        name: str | None = self.manager.add_request(list(input_ids), max_new_tokens=most, **options)
        return name
