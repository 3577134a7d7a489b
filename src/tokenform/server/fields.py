"""Fields that several endpoints have, with their types and bounds.

Invariant: an unknown field is refused, because it may bind the answer.  Fields that don't concern the text of
the answer (caller, storage, billing) are known by name and ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tokenform.decoding.aligned import AWRS, CARS, MCMC, SMC, ASAp, Beam
from tokenform.decoding.calls import AnySampler
from tokenform.decoding.samplers.local import Local
from tokenform.decoding.speculative.targets import Penalties
from tokenform.server.faults import Refused, about

MOST = 128  # texts of a request
_BINDING = (
    *("tools", "structured_outputs", "guided_regex", "guided_choice", "guided_grammar"),
    *("guided_json", "guided_json_object"),
)
_FAITHFUL = {"asap": ASAp, "cars": CARS, "awrs": AWRS, "smc": SMC, "mcmc": MCMC, "beam": Beam}


class Strict(BaseModel):
    """A part of a body: only known fields of the right type."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=(), populate_by_name=True)


class SamplerChoice(Strict):
    """`sampler`, a field of this server: a faithful sampler by name, with its numbers."""

    name: str
    particles: Annotated[int, Field(ge=1, le=256)] | None = None
    steps: Annotated[int, Field(ge=1, le=256)] | None = None
    width: Annotated[int, Field(ge=1, le=256)] | None = None
    max_attempts: Annotated[int, Field(ge=1, le=100_000)] | None = None


class Sampling(Strict):
    """Sampling, and fields that are ignored."""

    model: str = ""
    n: Annotated[int, Field(ge=1, le=MOST)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    temperature: Annotated[float, Field(ge=0, le=10)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None
    logit_bias: dict[str, float] | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    sampler: str | SamplerChoice | None = None
    drafter: str | list[str] | None = None
    confidence: bool | list[str] | None = None
    report: bool | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None

    def sampler_of(self, default: AnySampler) -> AnySampler | None:
        """The sampler of the fields; None: the model's own."""
        changed: dict[str, Any] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": None if self.top_k in (0, -1) else self.top_k,
            "min_p": self.min_p,
        }
        settings = {name: value for name, value in changed.items() if value is not None}
        if self.sampler is not None:
            return self._faithful(settings)
        if not settings:
            return None
        base = default if isinstance(default, Local) else Local(temperature=0.0)
        with about(f"/{next(iter(settings))}"):
            return replace(base, **settings)

    def _faithful(self, settings: dict[str, Any]) -> AnySampler:
        choice = SamplerChoice(name=self.sampler) if isinstance(self.sampler, str) else self.sampler
        assert choice is not None
        numbers = {name: value for name, value in choice.model_dump().items() if name != "name" and value}
        if choice.name == "local" and not numbers:
            return Local(**{"temperature": 1.0, **settings})
        if choice.name not in _FAITHFUL:
            names = ", ".join(["local", *_FAITHFUL])
            raise Refused(f"there is no sampler {choice.name!r}; choose one of {names}.", param="/sampler")
        with about("/sampler"):
            try:
                sampler: AnySampler = _FAITHFUL[choice.name](**numbers, **settings)
            except TypeError:
                options = ", ".join([*numbers, *settings])
                raise Refused(f"{choice.name} does not take all of {options}.", param="/sampler") from None
            return sampler

    def penalties(self) -> Penalties | None:
        """Penalties, if any are set."""
        numbers = self.repetition_penalty or 1.0, self.frequency_penalty or 0.0, self.presence_penalty or 0.0
        return None if numbers == (1.0, 0.0, 0.0) else Penalties(*numbers)

    def stops(self) -> list[str]:
        """The texts at which free text ends."""
        listed = [self.stop] if isinstance(self.stop, str) else list(self.stop or ())
        if len(listed) > 16 or any(not one or len(one) > 256 for one in listed):
            raise Refused("stop takes up to 16 texts of 1 to 256 characters.", param="/stop")
        return listed


class StreamSettings(Strict):
    """`stream_options`."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None
    include_obfuscation: bool | None = None


class Constrained(Sampling):
    """vLLM's fields for constraints, present and former, and fields for templates."""

    structured_outputs: dict[str, Any] | None = None
    guided_json: dict[str, Any] | str | bool | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    guided_json_object: bool | None = None
    guided_whitespace_pattern: Literal[None] = None
    guided_decoding_backend: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    show_schema: bool | None = None

    def binds(self) -> bool:
        """Whether there is a constraint, or tools, to be read."""
        if any(getattr(self, name, None) for name in _BINDING):
            return True
        forms = [getattr(self, name, None) for name in ("response_format", "output_format")]
        for name in ("text", "output_config"):
            outer = getattr(self, name, None)
            forms.append(outer.get("format") if isinstance(outer, Mapping) else None)
        return any(form is not None and form != {"type": "text"} for form in forms)
