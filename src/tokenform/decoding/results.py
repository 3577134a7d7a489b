"""The results of generation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from tokenform.decoding.speculative.request import Report
from tokenform.decoding.speculative.request import Stats as Stats
from tokenform.engine import TokenAutomaton
from tokenform.errors import BudgetTooSmall, InvalidType
from tokenform.frontends.tools.calls import ToolCall, ToolCalls

if TYPE_CHECKING:
    from tokenform.decoding.alternatives import Origin
    from tokenform.decoding.prompts import ReadPrompt
    from tokenform.decoding.result_field import Field
    from tokenform.decoding.speculative.deciding import Decision
    from tokenform.decoding.thinking import Thought


@dataclass(frozen=True)
class Estimates:
    """A weighted sampler's estimates of the distribution of its draws.

    Attributes:
        target: the distribution aimed at, in words.
        exact: whether each draw has exactly that distribution.
        log_z, log_z_error: estimate of the logarithm of the target's mass under the model, and its standard
            error; None where the sampler gives none.
        distance: proven upper bound on the total variation between the draws' distribution and the target, or
            None.
        ess: effective number of draws, 1 / sum of squared normalised weights.
        forwards, evaluations, attempts: forward passes, evaluations of the constraint and texts begun, for
            all draws of the call together.
    """

    target: str
    exact: bool
    log_z: float | None
    log_z_error: float | None
    distance: float | None
    ess: float
    forwards: int
    evaluations: int
    attempts: int


T = TypeVar("T", default=Any)
_SHOWN = 200  # characters of a text or value that a result's repr has


@dataclass
class Result(Generic[T]):
    """One complete text that the constraint accepts; `T` is the type of its value.

    Attributes:
        text: the text.
        tokens: its ids, without the end-of-text token.
        value: the parsed text: JSON, an instance of the requested type, or the text itself.
        logprob: natural logarithm of the probability of `tokens` under the model's own distribution at
            temperature 1, before masks, transforms and truncation; without the end-of-text token.  Weighted
            samplers: under the distribution after temperature and truncation, end-of-text included.  NaN with
            `logprobs=False`.
        log_weight: logarithm of the importance weight towards the sampler's target; 0 for samplers whose
            draws are not weighted.
        stats: the work behind it; of weighted samplers an equal part of the call's.
        report: on speculation (acceptance by depth and source, times, notes); None for plain decoding.
        estimates: of a weighted sampler's distribution, for all draws of the call; else None.
        token_logprobs: float [len(tokens)], natural logarithm of each token's probability, as in `logprob`;
            empty for weighted samplers, and with `logprobs=False`.
        guessed: bool [len(tokens)], whether each token is an accepted draft; empty for weighted samplers.
        likeliest: at each token (id, log-probability) of the model's likeliest ones, best first; empty unless
            requested (`Scheduler.submit`).
        decided: the values that were decided as wholes (`Local.values`), in order.
        reason: "end", or "length" where the budget cut in: it replaced a token that was drawn under the
            constraint, so that the text could still be completed.  Samplers of whole texts draw only texts
            that fit; theirs is "length" only where a text used the last allowed token.
        cut_at: how many characters were written before that; None for "end".
        cut: JSON Pointers of the values that the budget made: the one in progress when it cut in, those
            written after, and a container that it closed before any of these.  All other values are the same
            with a larger budget, but containers around listed ones may then have more members.  [""] for
            texts that are no JSON document, and for tool calls, of which `value` has only the complete ones.
        automaton: the constraint over the model's tokens, for drawings; None for weighted samplers.
        error: why the type's validators refuse the text, with `on_invalid="return"`; `value` is then the
            document as JSON has it.  None for a valid text.
        origin: the generator that wrote it, for `Field.alternatives`; None for weighted samplers.
        prompt: what the model read, as text (`str(result.prompt)`) and as `ids`; None where it is not known.
        thought: the model's reasoning before the text; None: there was none.
        stopped: the stop text that ended it, which `text` leaves out; None: none did.
        find: finds the captures of the grammar in a text; None: it has none.
    """

    text: str
    tokens: list[int]
    value: T
    logprob: float
    log_weight: float = 0.0
    stats: Stats = field(default_factory=Stats)
    estimates: Estimates | None = None
    report: Report | None = None
    token_logprobs: list[float] = field(default_factory=list)
    guessed: list[bool] = field(default_factory=list)
    likeliest: list[list[tuple[int, float]]] = field(default_factory=list)
    decided: list[Decision] = field(default_factory=list, repr=False, compare=False)
    reason: str = "end"
    cut_at: int | None = None
    cut: list[str] = field(default_factory=list)
    automaton: TokenAutomaton | None = field(default=None, repr=False, compare=False)
    error: InvalidType | None = None
    origin: Origin | None = field(default=None, repr=False, compare=False)
    prompt: ReadPrompt | None = field(default=None, repr=False, compare=False)
    thought: Thought | None = None
    stopped: str | None = None
    find: Callable[[str], dict[str, Any]] | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        """The text and what is worth knowing of it, in one line."""
        shown = [_short(self.text)]
        if not isinstance(self.value, str) or self.value != self.text:
            shown.append(f"value={_short(self.value)}")
        shown.append(f"tokens={len(self.tokens)}")
        if self.reason != "end":
            shown.append(f"reason={self.reason!r}")
        told = {"cut": self.cut, "reasoning": self.reasoning, "error": self.error}
        shown += [f"{name}={_short(value)}" for name, value in told.items() if value]
        return f"Result({', '.join(shown)})"

    @property
    def captures(self) -> dict[str, Any]:
        """The parts that `tf.combinators.capture` names, or `[capture]` of a rule in llguidance's dialect: a
        `Capture` each, or a list where a name occurs several times.

        Raises:
            OptionError: the text was cut, so the grammar does not accept it.
            LimitExceeded: finding them needs too many steps.

        >>> import tokenform as tf
        >>> grammar = tf.lark('start: "n=" number\\nnumber[capture]: /[0-9]+/')
        >>> result = tf.generate("The parcel has the number 4821.", grammar, max_tokens=20)
        >>> result.captures["number"].text == result.text[2:]
        True
        """
        return {} if self.find is None else self.find(self.text)

    @property
    def reasoning(self) -> str | None:
        """The model's reasoning before this text, without the marks around it; None: there was none."""
        return None if self.thought is None else self.thought.text

    @property
    def prompt_tokens(self) -> int | None:
        """How many tokens the model read; it wrote `stats.tokens` and those of `thought`.  None: unknown."""
        return None if self.prompt is None else len(self.prompt.ids)

    @property
    def valid_share(self) -> float | None:
        """Estimated share of valid texts: for `Local` among those that the masks allow, for other samplers
        among all texts of the model; None where nothing is known.  `estimates` has its error.
        """
        known = self.estimates
        return None if known is None or known.log_z is None else math.exp(known.log_z)

    @property
    def probabilities(self) -> dict[Any, float]:
        """The probability of each possible value, likeliest first, where the whole text is one of few values
        (`choices=`, an enum, a Literal): under the model's own distribution, of the whole value with its end,
        given that one of them follows.

        It costs no pass where the text was decided as a whole, else one.

        Raises:
            OptionError: the text is not one of few values; or a weighted sampler drew it.
            ModelError: a pass is needed, and the generator is gone.

        >>> import tokenform as tf
        >>> result = tf.generate("The parcel is red.", choices=["red", "blue"])
        >>> list(result.probabilities), round(sum(result.probabilities.values()), 6)
        (['red', 'blue'], 1.0)
        """
        from tokenform.decoding.alternatives import probabilities

        return probabilities(self, range(1), 0)

    def field(self, pointer: str) -> Field:
        """One value of a document: its place, its tokens, and the model's confidence in it.

        Args:
            pointer: a JSON Pointer; "" is the whole document, or the text where the constraint is of texts.
        Raises:
            OptionError: the text is no JSON document, or has nothing there.

        >>> import tokenform as tf
        >>> number = {"properties": {"number": {"type": "integer"}}, "required": ["number"]}
        >>> field = tf.generate("The parcel has the number 4821.", schema=number).field("/number")
        >>> field.value, field.text, 0 < field.probability <= 1
        (4821, '4821', True)
        """
        from tokenform.decoding.result_field import result_field

        return result_field(self, pointer)

    def _repr_html_(self) -> str:
        from tokenform.decoding.debug import result_html

        return result_html(self)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls of a text that was written under `tf.tools`, in order; empty for any other text."""
        return list(self.value) if isinstance(self.value, ToolCalls) else []


def _short(value: Any) -> str:
    """How a value is written, on one line of at most `_SHOWN` characters."""
    if isinstance(value, str) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!r}..."
    written = " ".join(repr(value).splitlines())
    return written if len(written) <= _SHOWN + 2 else f"{written[:_SHOWN]}..."


def too_long(result: Result) -> BudgetTooSmall:
    """The error of a text that the budget cut (`on_length="raise"`)."""
    where = ", ".join(one or "the whole text" for one in result.cut)
    error = BudgetTooSmall(
        f"the text did not end within its {len(result.tokens)} tokens, and was closed there"
        + (f"; made by the budget: {where}" if where else "")
        + '. Raise max_tokens, or take on_length="return" and look at Result.cut.',
        pointer=next(iter(result.cut), None),
    )
    error.result = result
    return error


def read_value(grammar: Any, text: str) -> tuple[Any, InvalidType | None]:
    """The value of an accepted text, and why the type's validators refuse it: then the value is JSON."""
    try:
        return grammar.parse(text), None
    except InvalidType as error:
        return error.partial, error


def finder(grammar: Any) -> Callable[[str], dict[str, Any]] | None:
    """What finds the captures of a grammar; None: it has none."""
    return grammar.captures if getattr(grammar, "parts", None) is not None else None
