"""The driver: draft, score, verify, commit, for a ragged batch of sequences.

Purpose: `add` requests at any time, `step` until they are done; one forward pass of the model
serves all of them in each step.
Invariant: the distribution of a text is the sampler's, whatever is drafted; the
text itself does not depend on drafts, the batch or the order of requests.  A sequence that
fails takes no other with it, and leaves nothing in the cache.
Complexity: one forward pass a step, plus the drafters' own, which the batch shares (`drafting.py`).
Source: Leviathan et al. 2023; Miao et al. 2024; design, "the shared speculative backbone".
Rejected: a loop per sampler (each would need its own drafting).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch

from tokenform.decoding.clock import Clock, Span
from tokenform.decoding.draws.base import FAILED
from tokenform.errors import InvalidState, TokenformError, own_error

from .backbone import Backbone
from .drafters.base import Nothing, Seen
from .drafters.merge import Merge
from .drafting import Drafting, together
from .live import Live
from .matching import DeviceDraws, Logits, Scored, Verdict, Verdicts
from .passes import Passes
from .policies import Account, Fixed, Policy
from .request import UNKNOWN, Cut, Output, Report, Request
from .tree import UNGUESSED, DraftTree

Likely = list[tuple[int, float]]
"""(id, log-probability) of the likeliest tokens at one place, best first."""


class Step(NamedTuple):
    """What a step did for a sequence.

    Attributes:
        number: of the sequence, from `add`.
        tokens: the new ones, end-of-text excluded.
        output: the whole text so far.
        thought: where the tokens are of a preamble, its new characters; None: they are of the text.
    """

    number: int
    tokens: list[int]
    output: Output
    thought: str | None = None


class Speculator:
    """Writes texts with a backbone.

    Args:
        backbone: runs the model.
        drafter: proposes tokens; None is plain decoding.
        policy: size and shape of drafts; None is 32 nodes.
        matcher: draws; None makes one where the logits are.
    """

    def __init__(
        self,
        backbone: Backbone,
        drafter: Any = None,
        policy: Policy | None = None,
        matcher: DeviceDraws | None = None,
    ) -> None:
        self.backbone, self._draws = backbone, matcher or DeviceDraws(backbone.device)
        self.drafter = drafter if drafter is not None else Nothing()
        self.policy = policy if policy is not None else Fixed(32)
        self.report = Report(notes=list(backbone.notes))
        self._live: dict[int, Live] = {}
        self._kept_sequences: dict[
            int, list[tuple[Backbone, int]]
        ] = {}  # of texts that have ended, to go on with
        self._next = 0
        self._merge = _merged(self.drafter)
        self._passes = Passes(backbone, self._draws, self.report)
        self._clock = Clock(backbone.device)

    @property
    def active(self) -> int:
        """Sequences that are not done."""
        return len(self._live)

    def add(self, request: Request) -> int:
        """Starts a text; returns its number in `step` and `cancel`.

        Raises:
            PromptTooLong, OptionError: the prompt can't be run.
        """
        drafter = self._merge if request.drafter is None else _merged(request.drafter)
        number, self._next = self._next, self._next + 1
        self._live[number] = Live(number, request, self.backbone, drafter)
        return number

    def output(self, number: int) -> Output:
        """The text so far of a live sequence."""
        try:
            return self._live[number].output
        except KeyError:
            raise InvalidState(f"text {number} is not being written") from None

    def cancel(self, number: int) -> Output:
        """Ends a text and frees its cache."""
        output = self.output(number)
        self._finish(self._live[number], "cancelled")
        return output

    def pop_sequences(self, number: int) -> list[tuple[Backbone, int]]:
        """Hands over, once, the sequences that an ended text has kept: another request goes on from them, or
        they are dropped."""
        return self._kept_sequences.pop(number, [])

    def close(self) -> None:
        """Ends everything."""
        for number in list(self._live):
            self.cancel(number)
        for number in list(self._kept_sequences):
            self.drop(number)

    def drop(self, number: int) -> None:
        """Frees the sequences that an ended text has kept."""
        for part, seq in self.pop_sequences(number):
            part.drop(seq)

    def step(self) -> list[Step]:
        """One forward pass; returns a step for each sequence that moved or ended."""
        steps: list[Step] = []
        for live in list(self._live.values()):
            reason = live.ended()
            if reason:
                self._finish(live, reason)
                steps.append(Step(live.number, [], live.output))
        batch = list(self._live.values())
        if not batch:
            return steps
        scored = self._passes.score(batch, self._draft(batch))
        matchable: list[Scored] = []
        for live, got in scored:
            if not isinstance(got, TokenformError):
                matchable.append((live, got))
        began = time.perf_counter()
        verdicts = self._draws.match(matchable)
        seconds = (time.perf_counter() - began) / max(len(matchable), 1)
        for live, _ in matchable:
            live.output.report.seconds_mask += seconds
        if self._passes.timed:
            for timing in self._passes.timings():
                self.policy.observe(*timing)
        likely: dict[int, list[Likely]] = {}
        for live in batch:
            if live.request.alternatives:
                likely = _likeliest(self.backbone, scored, verdicts)
                break
        for live, logits in scored:
            tokens: list[int] = []
            try:
                if isinstance(logits, TokenformError):
                    raise logits
                verdict = verdicts[live.number]
                if isinstance(verdict, TokenformError):
                    raise verdict
                tokens = self._commit(live, verdict, logits, likely.get(live.number, []))
            except Exception as error:
                self._finish(live, "error", own_error(error, FAILED))
            steps.append(Step(live.number, tokens, live.output))
        return steps

    def _draft(self, batch: list[Live]) -> Span | None:
        """Drafts for all sequences at once, so that they share the passes of the drafters' models.

        Returns:
            the time it took; None where nobody drafts.
        """
        for live in batch:
            if live.drafts:
                break
        else:
            for live in batch:
                if live.tree.tokens:
                    live.draft_nothing()
                else:
                    live.session.reset(live.output.state)
                self._draws.deciding.prepare(live)
            return None
        span = self._clock.begin()
        asking, accounts = list[Drafting[DraftTree]](), list[Account]()
        for live in batch:
            account = live.account
            account.beside = 0
            if len(batch) == 1 and not live.output.tokens:
                account.begins(self.backbone.pending(live.seqs[0][1]) - 1)
            asking.append(live.drafting(self.policy.budget(len(batch), account)))
            accounts.append(account)
        drafts = together(asking, self._draws)
        trees = [draft.tree for draft in drafts]
        keep = self.policy.shape(trees, self._passes.padding, accounts)
        for live, draft, kept in zip(batch, drafts, keep, strict=True):
            live.take(draft, kept)
            self._draws.deciding.prepare(live)
        span.end()
        return span

    def _commit(self, live: Live, verdict: Verdict, logits: Logits, likely: list[Likely]) -> list[int]:
        """Moves a sequence on; returns the new tokens, end-of-text excluded."""
        tokens, logprobs = verdict.tokens, verdict.logprobs
        if not tokens:  # a value that begins here is not decided yet
            return []
        request, output, tree = live.request, live.output, live.tree
        end: int | None = None
        for index, token in enumerate(tokens):
            if token in request.eos:
                end, tokens = index, tokens[: index + 1]
                break
        left = request.max_tokens - len(output.tokens)
        tokens = tokens[: left + (end is not None)]
        for index, refused in enumerate(verdict.refused[: len(tokens)]):
            if refused is not None and output.cut is None:
                output.cut = Cut(len(output.tokens) + index, refused)
        text = tokens if end is None else tokens[:-1]
        if tree.tokens:
            visited = tree.walk(tokens)
            output.report.count(tree, visited, len(tokens))
            guessed = [tree.sources[node] not in UNGUESSED for node in visited]
            output.guessed.extend([*guessed, *[False] * len(text)][: len(text)])
        else:
            visited = []
            output.report.tokens += len(tokens)
            output.guessed.extend([False] * len(text))
        if live.drafts:
            live.account.wrote(tokens)
        if request.logprobs:
            output.logprob += math.fsum(logprobs[: len(text)])
            output.token_logprobs.extend(logprobs[: len(text)])
        output.likeliest.extend(likely[: len(text)])
        if request.automaton is not None and text:
            known, states = live.session.states, list[Any]()
            for index, token in enumerate(text):
                drafted = index < len(visited)
                above = states[-1] if states else output.state
                states.append(known[visited[index]] if drafted else request.automaton.advance(above, token))
            if live.forced is not None:
                live.forced.take(text, states, tree, visited)
            output.state = states[-1]
        output.tokens.extend(text)
        live.text.extend(text)
        if end is None or request.keep_sequences:
            for part, seq in live.seqs:
                part.commit(seq, text)
        if live.drafts:  # the last step too: drafters remember the whole text
            began = time.perf_counter()
            live.session.observe(live.context, Seen(text, tree, logits[0], verdict.drawn))
            output.report.seconds_draft += time.perf_counter() - began
        if end is not None:
            self._finish(live, "end")
        return text

    def _finish(self, live: Live, reason: str, error: TokenformError | None = None) -> None:
        output = live.output
        if reason == "end" and output.cut is not None:
            reason = "length"
        elif reason == "length" and output.cut is None:  # the end was never scored
            output.cut = Cut(len(output.tokens), UNKNOWN)
        output.done, output.reason, output.error = True, reason, error
        del self._live[live.number]
        live.session.close()
        if live.request.keep_sequences:
            self._kept_sequences[live.number], live.seqs = live.seqs, []
        live.drop()
        output.report.notes = [*self.backbone.notes, *live.session.faults]
        forwards = self.report.forwards
        self.report.add(output.report)
        self.report.forwards = forwards


def _likeliest(
    backbone: Backbone, scored: Sequence[tuple[Live, Logits | TokenformError]], verdicts: Verdicts
) -> dict[int, list[Likely]]:
    """The likeliest tokens at each token of a verdict, where requested; one transfer for all.

    A value that earlier passes decided is run once more, as the draft of this pass.
    """
    asking: list[tuple[Live, torch.Tensor]] = []
    for live, logits in scored:
        verdict = verdicts.get(live.number)
        if live.request.alternatives and isinstance(logits, list) and isinstance(verdict, Verdict):
            tokens, own = verdict.tokens, cast("torch.Tensor", logits[0])
            rows = [0, *(node + 1 for node in live.tree.walk(tokens))][: len(tokens)]
            if len(rows) < len(tokens):
                rows, seq = list(range(len(tokens))), live.seqs[0][1]
                try:
                    own = backbone.score({seq: DraftTree.chain(tokens[:-1])})[seq]
                except Exception as error:
                    verdicts[live.number] = own_error(error, FAILED)
                    continue
            asking.append((live, own[rows]))
    if not asking:
        return {}
    logprobs = torch.log_softmax(torch.cat([rows for _, rows in asking]).float(), -1)
    most = min(max(live.request.alternatives for live, _ in asking), logprobs.shape[-1])
    best, ids = logprobs.topk(most, -1)
    rows_on_host = iter(torch.stack([ids.double(), best.double()], 1).tolist())
    return {
        live.number: [
            [(int(token), score) for token, score in zip(*next(rows_on_host), strict=True)][
                : live.request.alternatives
            ]
            for _ in range(len(rows))
        ]
        for live, rows in asking
    }


def _merged(drafter: Any) -> Merge:
    return drafter if isinstance(drafter, Merge) else Merge(drafter)
