"""Tool formats: their parts, for formats of one's own, a model's own format, and calls as they stream.

Purpose: one public place for `Format` and its parts; `tools`, `parse_tool_calls` and `ToolCallStream` take a
`Format` wherever they take a format's name.
Invariant: what a format says is read, written as a grammar and streamed alike; nothing else has to be coded.
Rejected: registering formats under names (a value can't clash with another).

Example:
    >>> import tokenform as tf
    >>> from tokenform.tool_formats import Format, JsonArguments, Name, Wire
    >>> arrows = Format("arrows", "a model of my own", Wire(("<<", Name(), ">>", JsonArguments(), "<</>>")))
    >>> tool = {"name": "ping", "parameters": {"type": "object", "properties": {}}}
    >>> [call.name for call in tf.parse_tool_calls("Well. <<ping>>{}<</>>", [tool], format=arrows)]
    ['ping']
"""

from __future__ import annotations

from tokenform.frontends.structural_tag import structural_tag
from tokenform.frontends.tools import ToolCallStream, ToolFormat, detect_format, mcp_tools
from tokenform.frontends.tools.layout import (
    Either,
    Elements,
    Format,
    Id,
    JsonArguments,
    JsonCall,
    MarkedArguments,
    Maybe,
    Name,
    PythonArguments,
    Tagged,
    Wire,
)

__all__ = [
    "Either",
    "Elements",
    "Format",
    "Id",
    "JsonArguments",
    "JsonCall",
    "MarkedArguments",
    "Maybe",
    "Name",
    "PythonArguments",
    "Tagged",
    "ToolCallStream",
    "ToolFormat",
    "Wire",
    "detect_format",
    "mcp_tools",
    "structural_tag",
]
