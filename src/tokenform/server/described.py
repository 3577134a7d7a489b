"""What the server takes, as OpenAPI and as a page that loads nothing.

Invariant: both come from the types that read the bodies, so they list exactly the accepted fields.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from functools import cache
from typing import Any

from tokenform.server.endpoints import COUNTS, ENDPOINTS
from tokenform.version import __version__

_PLACE = "#/components/schemas/"
_GET_PATHS = {
    "/v1/models": "The model that is served.",
    "/v1/models/{name}": "The model, if it has this name.",
    "/health": "Whether the server takes requests, and how many are under way; asks for no key.",
    "/metrics": "Figures for Prometheus.",
    "/version": "The version of tokenform; asks for no key.",
    "/openapi.json": "This description; asks for no key.",
    "/docs": "This description to read; asks for no key.",
}
_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"], "description": "JSON Pointer into the body"},
                "code": {"type": "string"},
            },
            "required": ["message", "type"],
        }
    },
    "required": ["error"],
}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}:root{color-scheme:light dark}"
    "td,th{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;"
    "border-top:1px solid #8884;overflow-wrap:anywhere}"
)
HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}


@cache
def openapi() -> dict[str, Any]:
    """The description, OpenAPI 3.1."""
    schemas: dict[str, Any] = {"Error": _ERROR}
    paths: dict[str, Any] = {}
    endpoints: list[Any] = [*ENDPOINTS, *COUNTS]
    for one in endpoints:
        body = one.reads.model_json_schema(ref_template=f"{_PLACE}{one.name}.{{model}}")
        for name, part in body.pop("$defs", {}).items():
            schemas[f"{one.name}.{name}"] = part
        schemas[one.name] = body
        done: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
        if "stream" in body["properties"]:
            done["text/event-stream"] = {"schema": {"type": "string"}}
        paths[one.path] = {
            "post": {
                "operationId": one.name,
                "security": [{"key": []}],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": _PLACE + one.name}}},
                },
                "responses": {
                    "200": {"description": "The answer, or its events.", "content": done},
                    "default": {
                        "description": "What is wrong, and where.",
                        "content": {"application/json": {"schema": {"$ref": f"{_PLACE}Error"}}},
                    },
                },
            }
        }
    for path, summary in _GET_PATHS.items():
        operation: dict[str, Any] = {"summary": summary, "responses": {"200": {"description": summary}}}
        if "{name}" in path:
            operation["parameters"] = [
                {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
            ]
        if "no key" not in summary:
            operation["security"] = [{"key": []}]
        paths[path] = {"get": operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "tokenform", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


@cache
def page() -> str:
    """The description as a page of tables."""
    description = openapi()
    parts = [
        f"<h1>tokenform {html.escape(__version__)}</h1>",
        '<p><a href="openapi.json">openapi.json</a></p>',
    ]
    for path, methods in description["paths"].items():
        for method, one in methods.items():
            parts.append(f"<h2>{method.upper()} <code>{html.escape(path)}</code></h2>")
            if "summary" in one:
                parts.append(f"<p>{html.escape(one['summary'])}</p>")
            if "requestBody" in one:
                parts.append(_table(description["components"]["schemas"][one["operationId"]]))
    head = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>tokenform: API</title><style>{_STYLE}</style>"
    )
    return head + "".join(parts)


def _table(schema: dict[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = [
        f"<tr><th><code>{html.escape(name)}</code></th><td>{html.escape(_kind(one))}</td>"
        f"<td>{'required' if name in needed else ''}</td></tr>"
        for name, one in schema["properties"].items()
    ]
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def _kind(schema: dict[str, Any]) -> str:
    """A field's type in a few words."""
    if "anyOf" in schema:
        return " or ".join(kind for one in schema["anyOf"] if (kind := _kind(one)) != "null")
    if "$ref" in schema:
        return str(schema["$ref"].rpartition(".")[2])
    if "enum" in schema or "const" in schema:
        return ", ".join(map(str, schema.get("enum", [schema.get("const")])))
    return " ".join([str(schema.get("type", "anything")), *_bounds(schema)])


def _bounds(schema: dict[str, Any]) -> Iterator[str]:
    if schema.get("type") == "array":
        yield f"of {_kind(schema.get('items', {}))}"
    for name, word in (
        ("minimum", "from"),
        ("exclusiveMinimum", "above"),
        ("maximum", "to"),
        ("exclusiveMaximum", "below"),
    ):
        if name in schema:
            yield f"{word} {schema[name]}"
