"""Checks the origin and host of requests: a browser on this machine reaches servers that nobody else can.

Invariant: a request from another site's page is refused, whatever its method, unless the site was named.  A
server without keys answers only to its own names and to addresses, because a foreign name may be made to
resolve to this machine (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tokenform.errors import extras
from tokenform.server.faults import Refused

with extras():
    from starlette.datastructures import Headers
    from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class OwnPages:
    """The check before everything else.

    Args:
        origins: sites whose pages may call.
        hosts: names of the server; None: any.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str], hosts: Sequence[str] | None) -> None:
        self._app, self._origins, self._hosts = app, set(origins), hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers, scheme = Headers(scope=scope), str(scope.get("scheme", "http"))
            fault = foreign(headers, scheme, self._origins, self._hosts)
            if fault is not None:
                scope["state"]["record"].fail(fault.code)
                await JSONResponse(fault.body(), fault.status)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def foreign(
    headers: Headers, scheme: str, origins: Collection[str], hosts: Collection[str] | None
) -> Refused | None:
    """The refusal of a request from another site's page, or with another host name; else None."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if hosts is not None and not _is_own(host, hosts):
        message = (
            f"this server without keys does not answer to the name {host!r}; "
            "start it with --allowed-host NAME (hosts= in Python), or with keys."
        )
        return Refused(message, status=403, code="foreign_host")
    if origin is None or origin in origins or origin == f"{scheme}://{host}":
        return None
    return Refused(
        f"pages of {origin!r} may not ask this server; name the site with --origin (origins= in Python).",
        status=403,
        code="foreign_origin",
    )


def _is_own(host: str, hosts: Collection[str]) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name == "localhost" or name in [one.lower() for one in hosts]:
            return True
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
