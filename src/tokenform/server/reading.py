"""From the fields of a body to a `TextRequest`, for all endpoints: constraint, sampling, reports.

Invariant: fields of several APIs mean the same in each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tokenform.decoding.aligned.sampler import AlignedSampler
from tokenform.decoding.draws import Transform
from tokenform.decoding.speculative import drafters
from tokenform.server.engine import Engine
from tokenform.server.faults import Refused
from tokenform.server.fields import Constrained
from tokenform.server.keys import Key
from tokenform.server.text_request import TextRequest
from tokenform.server.thinking import RequestedThought, template_options
from tokenform.server.tooling import read_turn

_DRAFTERS: dict[str, Callable[[], Any]] = {
    "forced": drafters.Forced,
    "input": lambda: drafters.Suffix(remember=False),
    "names": drafters.Names,
    "ngram": drafters.NGram,
    "none": drafters.Nothing,
    "suffix": lambda: drafters.Suffix(remember=False),
}
_POINTERS = 64
_PENALTIES = ("repetition_penalty", "frequency_penalty", "presence_penalty")


def text_request(
    body: Constrained,
    engine: Engine,
    key: Key,
    prompt: Any,
    *,
    form: Any = None,
    form_place: str = "/response_format",
    tools: Sequence[Mapping[str, Any]] | None = None,
    tool_choice: Any = None,
    parallel: bool | None = None,
    max_tokens: int | None = None,
    alternatives: int | None = None,
    thought: RequestedThought | None = None,
) -> TextRequest:
    """The text request of a body.

    Args:
        form, form_place: the API's own field for the form of answers, and its place.
        tools, tool_choice, parallel: as OpenAI's chats have them.
    """
    reader = engine.reader(key)
    constraint = reader.one(body, form, form_place)
    final = None if constraint is None else constraint[1]
    turn = read_turn(tools, tool_choice, parallel, engine.format, final, reader)
    sampler = body.sampler_of(engine.sampler)
    chosen = engine.sampler if sampler is None else sampler
    drafter = _drafter(body.drafter)
    if isinstance(chosen, AlignedSampler):
        _check_whole(body, type(chosen).__name__, drafter, alternatives)
    render = getattr(engine.generator.tokenizer, "apply_chat_template", None)
    return TextRequest(
        prompt,
        final if turn is None else turn.grammar,
        turn,
        n=body.n or 1,
        seed=body.seed,
        max_tokens=max_tokens,
        sampler=sampler,
        penalties=body.penalties(),
        transforms=_biases(body.logit_bias, engine.generator.vocabulary.size),
        stop=body.stops(),
        alternatives=alternatives,
        drafter=drafter,
        thought=thought or RequestedThought(),
        chat_options=template_options(body.chat_template_kwargs, render),
        show_schema=body.show_schema,
        confidence=_confidence(body.confidence, final is not None and turn is None),
        report=bool(body.report),
    )


def _check_whole(body: Constrained, sampler: str, drafter: Any, alternatives: int | None) -> None:
    """Refuses what is of single tokens for a sampler of whole texts."""
    used = {
        "/drafter": drafter is not None,
        "/logit_bias": bool(body.logit_bias),
        "/top_logprobs": bool(alternatives),
        **{
            f"/{name}": body.penalties() is not None and getattr(body, name) is not None
            for name in _PENALTIES
        },
    }
    for place in (place for place, there in used.items() if there):
        raise Refused(f"{sampler} draws whole texts: {place} is not for it.", param=place)


def _drafter(value: str | list[str] | None) -> Any:
    """`drafter`: names of drafters; None: the server's own."""
    names = [value] if isinstance(value, str) else value
    if names is None or names == ["auto"]:
        return None
    for place, name in enumerate(names):
        where = "/drafter" if isinstance(value, str) else f"/drafter/{place}"
        if name in ("auto", "none") and len(names) > 1:
            raise Refused(f"drafter {name!r} stands alone; leave it out of the list.", param=where)
        if name not in _DRAFTERS:
            names_known = ", ".join(["auto", *_DRAFTERS])
            raise Refused(f"drafter {name!r} is not known; choose of {names_known}.", param=where)
        if name in names[:place]:
            raise Refused(f"drafter {name!r} stands here twice.", param=f"/drafter/{place}")
    if not names:
        raise Refused("drafter names one or a few drafters.", param="/drafter")
    # two names may mean one drafter here: nothing is remembered between requests
    chosen = list({drafter.name: drafter for drafter in (_DRAFTERS[name]() for name in names)}.values())
    return chosen[0] if len(chosen) == 1 else drafters.Merge(*chosen)


def _confidence(value: bool | list[str] | None, document: bool) -> bool | list[str]:
    """`confidence`: every value of the document, or those at the JSON Pointers."""
    if not value:
        return False
    if not document:
        raise Refused("confidence is of the fields of a document: bind the answer.", param="/confidence")
    if isinstance(value, list) and (len(value) > _POINTERS or any(one and one[0] != "/" for one in value)):
        raise Refused(f"confidence takes up to {_POINTERS} JSON Pointers.", param="/confidence")
    return value


def _biases(biases: dict[str, float] | None, size: int) -> list[Transform]:
    """`logit_bias`: token ids and the amounts added to their logits."""
    if not biases:
        return []
    if len(biases) > 1024:
        raise Refused("logit_bias takes up to 1024 tokens.", param="/logit_bias")
    ids, values = [], []
    for name, value in biases.items():
        if not name.isascii() or not name.isdigit() or int(name) >= size:
            raise Refused(f"logit_bias has {name!r}; ids are below {size}.", param="/logit_bias")
        if not -100 <= value <= 100:
            raise Refused("values of logit_bias are from -100 to 100.", param=f"/logit_bias/{name}")
        ids.append(int(name))
        values.append(float(value))
    places, amounts = torch.tensor(ids), torch.tensor(values, dtype=torch.float64)

    def add(_: Sequence[int], scores: torch.Tensor) -> torch.Tensor:
        scores[places.to(scores.device)] += amounts.to(scores.device)
        return scores

    return [add]
