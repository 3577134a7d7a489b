"""Tool calls: definitions, formats, the grammar of a format, and reading calls back.

A format is a file in `formats/`, made of the parts in `layout.py`.  A notation of arguments (`pythonic.py`,
`marked.py`, `elements.py`, `tagged.py`) is a `Notation` with its grammar and its reader, and a line of
`call.NOTATIONS`; turns made of channels stand in `channels.py`.
`definitions.py` says what a tool is, `shape.py` is the tree that `grammar.py` and `call.py` write for the
engine, `reader.py`, `read_call.py` and `stream.py` read outputs back.
"""

from __future__ import annotations

from tokenform.frontends.tools.calling import tools
from tokenform.frontends.tools.calls import ToolCall, ToolCalls
from tokenform.frontends.tools.compiled import shape_form
from tokenform.frontends.tools.definitions import read_tools
from tokenform.frontends.tools.detect import detect_format, find_format
from tokenform.frontends.tools.formats import FORMATS
from tokenform.frontends.tools.layout import Format
from tokenform.frontends.tools.making import tool_shape
from tokenform.frontends.tools.mcp import mcp_tools
from tokenform.frontends.tools.response_template import response_format
from tokenform.frontends.tools.shape import Shape
from tokenform.frontends.tools.stream import ToolCallStream, parse_tool_calls
from tokenform.frontends.tools.thoughts import Marks, find_marks, marks_of_format, thought
from tokenform.frontends.tools.tool import Tool

ToolFormat = Format

__all__ = [
    "FORMATS",
    "Format",
    "Marks",
    "Shape",
    "Tool",
    "ToolCall",
    "ToolCallStream",
    "ToolCalls",
    "ToolFormat",
    "detect_format",
    "find_format",
    "find_marks",
    "marks_of_format",
    "mcp_tools",
    "parse_tool_calls",
    "read_tools",
    "response_format",
    "shape_form",
    "thought",
    "tool_shape",
    "tools",
]
