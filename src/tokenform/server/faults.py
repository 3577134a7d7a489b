"""Errors as HTTP answers in OpenAI's form.

Invariant: an answer has the place as a JSON Pointer into the request's body (`param`) wherever there is one,
and nothing of the server's state or keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from tokenform import errors
from tokenform.decoding.speculative.backbone.facts import out_of_memory
from tokenform.errors import TokenformError
from tokenform.frontends.json_pointer import pointer_of


class Refused(Exception):
    """A request that is not served.

    Attributes:
        status: HTTP's.
        code: what is wrong, for programs.
        param: JSON Pointer into the request's body, or None.
        headers: of the answer.
        more: further members of the error.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str = "invalid_request",
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param
        self.headers, self.more = dict(headers or {}), more

    @property
    def is_failure(self) -> bool:
        """Whether the server is at fault, and its log says how."""
        return self.status >= 500 and self.status not in (503, 504)

    def body(self) -> dict[str, Any]:
        """The answer's body in OpenAI's form."""
        kind = _KINDS.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {
            "error": {
                "message": str(self),
                "type": kind,
                "param": self.param,
                "code": self.code,
                **{name: value for name, value in self.more.items() if value is not None},
            }
        }


def closing() -> Refused:
    """What requests get when the server ends."""
    return Refused("the server is closing.", status=503, code="closing", headers={"Retry-After": "5"})


_KINDS = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
_OF_THE_OPERATOR = re.compile(r",? or raise the limit(?: by\s+set_limits)?")
_OF_THE_SERVER = (errors.EngineError, errors.ModelError, errors.DrafterError, errors.Interrupted)


def refused(error: Exception, param: str | None = None) -> Refused:
    """Any error as a refusal.

    Args:
        param: the part of the request that it concerns; an error's own pointer is relative to it.
    """
    if isinstance(error, Refused):
        return error
    if isinstance(error, ValidationError):
        return _of_fields(error)
    if isinstance(error, errors.Busy):
        return Refused(f"the server is busy: {error}", status=429, code="busy", headers={"Retry-After": "1"})
    if out_of_memory(error):
        options: dict[str, Any] = {"status": 503, "code": "out_of_memory", "headers": {"Retry-After": "1"}}
        return Refused("memory ran out for this request; ask again later, or for less.", **options)
    if not isinstance(error, TokenformError):
        return Refused("the server failed; its log says how.", status=500, code="failed")
    status = 500 if isinstance(error, _OF_THE_SERVER) else 400
    pointer = error.pointer
    place = param if pointer is None else (param or "") + pointer
    more: dict[str, Any] = {"keyword": error.keyword, "line": error.line, "column": error.column}
    if isinstance(error, errors.BudgetTooSmall):
        more["least"] = error.least
        place = place or "/max_tokens"
    message = _OF_THE_OPERATOR.sub("", str(error))
    return Refused(message, status=status, code=_snake(type(error).__name__), param=place, **more)


@contextmanager
def about(param: str) -> Iterator[None]:
    """Gives errors inside this place in the request."""
    try:
        yield
    except TokenformError as error:
        raise refused(error, param) from error


def check_names(members: Iterable[str], allowed: Collection[str], place: str) -> None:
    """Refuses an unknown member of an object; `place` is the object's."""
    for name in members:
        if name not in allowed:
            message = f"{place}/{name} is not known here; there are {', '.join(sorted(allowed))}."
            raise Refused(message, code="unknown_field", param=f"{place}/{name}")


def _of_fields(error: ValidationError) -> Refused:
    """The first wrong field of a body."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    # of a value that may be this or that the error deepest in it: it got furthest
    first = max(
        (one for one in found if one["loc"][:1] == found[0]["loc"][:1]), key=lambda one: len(one["loc"])
    )
    place = pointer_of(_places(first["loc"]))
    if first["type"] == "extra_forbidden":
        advice = (
            "this server does not know the field, and ignores none that may bind the answer; leave it out"
        )
        return Refused(f"{place}: {advice}.", code="unknown_field", param=place)
    if not place:
        return Refused("the body is no JSON object.", code="invalid_field")
    return Refused(f"{place}: {first['msg'][:300]}.", code="invalid_field", param=place)


def _places(loc: tuple[int | str, ...]) -> Iterator[int | str]:
    """The steps of a place in the body, without the names of alternatives."""
    for part in loc:
        if isinstance(part, int) or not ("[" in part or part in _ALTERNATIVES):
            yield part


_ALTERNATIVES = {"SamplerChoice", "str", "int", "float", "bool", "dict", "list"}


def _snake(name: str) -> str:
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name).lstrip("_")
