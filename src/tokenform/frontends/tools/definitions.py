"""Tools, however the caller describes them, as one kind of value.

Purpose: OpenAI-style JSON, pydantic models and Python functions become `Tool`s (`tool.py`).
Invariant: the names of a list of tools differ, and each `parameters` is a valid JSON Schema of an object.
Complexity: linear in the size of the definitions.
Source: OpenAI's function-calling reference; the Responses API's flat form; Model Context Protocol
(`inputSchema`).
Rejected: guessing a missing name, or numbering tools of the same name (the caller could not tell whose call
it is).
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Union

from tokenform import _core
from tokenform.errors import InvalidSchema, InvalidType, ToolError
from tokenform.frontends import forms
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.json_text import loads
from tokenform.frontends.meanings import prompt_schema, reading_schema
from tokenform.frontends.nested_json import nested
from tokenform.frontends.pattern_dialects import without_dialects
from tokenform.frontends.portable_types import portable
from tokenform.frontends.python_types import TypeReader, exported, reader_of
from tokenform.frontends.structs import StructReader
from tokenform.frontends.tools.cache import TOOLS
from tokenform.frontends.tools.judge import has_item_lists, is_schema
from tokenform.frontends.tools.tool import ANY_OBJECT, Tool, Tools

# Most levels of a schema of arguments; what is made of it goes through them one inside the other.
DEPTH = 256
ToolLike = Union["Tool", Mapping[str, Any], type, Callable[..., Any]]
# What becomes of a tool whose parameters can't be read or kept, see `tools`.
ON_BAD_TOOL = ("raise", "any", "omit")


def in_list(tools: Iterable[ToolLike] | Mapping[str, Any]) -> list[Any]:
    """The items of a list of definitions, of a mapping with the key "tools", or a definition by itself.

    Raises:
        ToolError: it is none of these.
    """
    if isinstance(tools, Mapping):
        tools = tools["tools"] if "tools" in tools and "name" not in tools else [tools]
    if isinstance(tools, (str, bytes)) or not isinstance(tools, Iterable):
        raise ToolError("tools must be a list of definitions, models or functions")
    return list(tools)


def read_tools(
    tools: Iterable[ToolLike] | Mapping[str, Any],
    put_aside: Callable[[Tool, Exception], None] | None = None,
    listed: _core.ListedTools | None = None,
) -> Tools:
    """The tools of a list of definitions, or of a mapping with the key "tools".

    put_aside: called with a definition whose parameters are no schema; it is then read with any arguments.
    listed: what is cached of each, as `TOOLS.look` returns it.

    Raises:
        ToolError: a tool without a name, two of the same name, or something that is no tool.
        InvalidSchema: the arguments' schema is none.
        InvalidType: a type or function that no schema can be made of.
    """
    if isinstance(tools, Tools):
        return tools
    definitions = in_list(tools)
    if listed is None:
        listed = TOOLS.look(definitions)
    made, fresh = listed.made()
    for index, plain in zip(fresh, listed.definitions(fresh), strict=True):
        if plain:
            tool, own = Tool.of_text(*plain), False
        else:
            tool, own = _new_tool(definitions[index], index, put_aside)
        made[index] = tool
        listed.keep(index, tool, tool.branches, own)
    result = Tools(made)
    result.listed = listed
    twice = listed.twice()
    if twice:
        raise ToolError(
            f"tools {twice[0]} and {twice[1]} have the same name {result[twice[1]].name!r}; rename one"
        )
    return result


def _new_tool(
    tool: Any, index: int, put_aside: Callable[[Tool, Exception], None] | None
) -> tuple[Tool, bool]:
    """The tool, and whether it is read with any arguments, whatever its definition says."""
    bare = False
    try:
        try:
            made = _read_tool(tool, index)
        except InvalidSchema as error:
            if put_aside is None or not isinstance(tool, Mapping):
                raise
            made, bare = _from_json(tool, index, bare=True), True
            put_aside(made, error)
        f"{made.name}{made.description}".encode()
    except UnicodeEncodeError:
        raise ToolError(f"the name or description of tool {index} holds half a surrogate pair") from None
    return made, bare


def _read_tool(tool: Any, index: int) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Mapping):
        return _from_json(tool, index)
    if isinstance(tool, type):
        return _from_model(tool)
    if callable(tool):
        return _from_function(tool, index)
    raise ToolError(
        f"tool {index} is {type(tool).__name__}; give a definition, a pydantic model or a function"
    )


def _from_json(tool: Mapping[str, Any], index: int, bare: bool = False) -> Tool:
    """bare: whatever its parameters are, any object will do."""
    body = tool.get("function", tool)
    if not isinstance(body, Mapping):
        raise ToolError(f'"function" of tool {index} must be an object', pointer=f"/{index}/function")
    name = body.get("name")
    if not isinstance(name, str) or not name:
        raise ToolError(f'tool {index} has no name; give it "name"', pointer=f"/{index}")
    parameters: Any = None
    for key in ("parameters", "input_schema", "inputSchema"):
        parameters = body.get(key) if parameters is None else parameters
    said = body.get("description")
    description = said if isinstance(said, str) else ""
    if bare:
        try:
            shown = loads(_text(parameters, name)) if isinstance(parameters, Mapping) else None
        except InvalidSchema:
            shown = None
        return Tool(name, description, ANY_OBJECT, shown=shown)
    checked, text = _checked(parameters, name)
    return Tool(name, description, checked, text=text)


def _checked(parameters: Any, name: str) -> tuple[Mapping[str, Any], str]:
    """The schema of an object, which is nobody else's, and its text; or an error that names the tool."""
    if parameters is None:
        parameters = {"type": "object", "properties": {}}
    if not isinstance(parameters, Mapping):
        raise InvalidSchema(f"the parameters of tool {name!r} must be a JSON Schema object")
    text = _text(parameters, name)
    fault = _fault(text)
    if fault is not None:
        place, message = fault
        raise InvalidSchema(
            f"the parameters of tool {name!r} are no JSON Schema, at {place or '/'}: {message}", pointer=place
        )
    plain = loads(text)
    if plain.get("type") == "object":
        return plain, text
    if plain.get("type", "object") not in ("object", ["object"]):
        raise InvalidSchema(f'the parameters of tool {name!r} must have "type": "object"', pointer="/type")
    plain["type"] = "object"
    return plain, forms.written(plain)


def _text(parameters: Mapping[str, Any], name: str) -> str:
    """The parameters as JSON; or an error that names the tool."""
    try:
        text = _core.json_text(parameters)  # of `DEPTH` levels at most
        if text is None:
            if _deeper(parameters, DEPTH):
                raise InvalidSchema(f"the parameters of tool {name!r} are nested deeper than {DEPTH} levels")
            text = json.dumps(parameters, allow_nan=False)
            json.dumps(parameters, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InvalidSchema(f"the parameters of tool {name!r} hold half a surrogate pair") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidSchema(f"the parameters of tool {name!r} are not JSON: {error}") from None
    return text


def _deeper(value: Any, most: int) -> bool:
    """Whether the value has more than so many levels of lists and mappings."""
    level: list[Any] = [value]
    for _ in range(most):
        below: list[Any] = []
        for item in level:
            inside = (
                item.values() if isinstance(item, Mapping) else item if isinstance(item, list | tuple) else ()
            )
            below += [inner for inner in inside if isinstance(inner, Mapping | list | tuple)]
        if not below:
            return False
        level = below
    return True


@lru_cache(maxsize=1024)
def _fault(text: str) -> tuple[str, str] | None:
    """Where and why the text is no JSON Schema; kept, because an agent gives the same tools at every turn."""
    plain = loads(text)
    draft = plain.get("$schema")
    if is_schema(text, draft):
        return None
    import jsonschema

    lists = draft is None and has_item_lists(text)
    kind = jsonschema.Draft201909Validator if lists else jsonschema.Draft202012Validator
    try:
        if isinstance(draft, str):
            kind = jsonschema.validators.validator_for(plain, default=kind)
    except ValueError:  # no URI
        pass
    try:
        # patterns are ECMA-262's: the engine judges them, when the grammar is made
        kind.check_schema(plain, format_checker=jsonschema.FormatChecker(formats=()))
    except RecursionError:  # nested deeply: left to the engine
        return None
    except jsonschema.exceptions.SchemaError as error:
        return "".join(f"/{part}" for part in error.absolute_path), str(error.message)
    return None


def _from_model(model: type) -> Tool:
    """A model, dataclass, typed dictionary, attrs class or Struct: the call's arguments are its fields."""
    read = reader_of(model, model.__name__)
    shown, parameters, places = _schemas(read)
    if shown.get("type") != "object" and "$ref" not in shown:
        raise InvalidType(f"{model.__name__} is not an object type; a tool's arguments have names")
    name = getattr(model, "__tool_name__", model.__name__)
    description = inspect.cleandoc(model.__doc__) if model.__doc__ and _own_docstring(model) else ""
    checked, text = _checked(parameters, name)
    return Tool(
        name, description, checked, convert=_Converter(read), strings_in=places, shown=shown, text=text
    )


def _own_docstring(model: type) -> bool:
    """Whether the docstring is the author's (a dataclass without one gets its signature as docstring)."""
    return not str(model.__doc__).startswith(f"{model.__name__}(")


def _from_function(function: Callable[..., Any], index: int) -> Tool:
    """A function: its parameters are the arguments, its docstring describes it and them."""
    name = getattr(function, "__name__", "")
    if not name or name == "<lambda>":
        raise ToolError(
            f"tool {index} is a function without a name; define it with def, or give a definition"
        )
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, ValueError, TypeError) as error:
        raise InvalidType(f"the signature of {name!r} can't be read: {error}") from None
    summary, _ = describe(function.__doc__ or "")
    read = _arguments_reader(function, name, signature)
    shown, parameters, places = _schemas(read)
    checked, text = _checked(parameters, name)
    return Tool(name, summary, checked, _Converter(read), function, places, shown, text)


def _arguments_reader(
    function: Callable[..., Any], name: str, signature: inspect.Signature | None = None
) -> TypeReader:
    """What reads the arguments of a function; parameters without an annotation take anything."""
    import pydantic

    if signature is None:
        signature = inspect.signature(function, eval_str=True)
    _, notes = describe(function.__doc__ or "")
    fields: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise InvalidType(
                f"{name!r} has the positional-only parameter {parameter.name!r}; calls use names"
            )
        annotation = Any if parameter.annotation is parameter.empty else portable(parameter.annotation)
        default = ... if parameter.default is parameter.empty else parameter.default
        # Aliases: a parameter named like a BaseModel attribute ("schema", "_x") is then no clash.
        note = notes.get(parameter.name)
        fields[f"p{len(fields)}"] = (
            annotation,
            pydantic.Field(default, alias=parameter.name, description=note)
            if note
            else pydantic.Field(default, alias=parameter.name),
        )
    try:
        model = pydantic.create_model(name, __config__=pydantic.ConfigDict(title=name), **fields)
        adapter = pydantic.TypeAdapter(model)
    except Exception as error:
        raise InvalidType(f"no JSON Schema can be made of the annotations of {name!r}: {error}") from None
    names = {field: str(info.alias) for field, info in model.model_fields.items()}
    read = TypeReader(adapter, name, names)
    read.made = _arguments_reader, (function, name)
    return read


@dataclass(frozen=True, eq=False)
class _Converter:
    """From arguments to what the type's reader makes of them."""

    read: TypeReader | StructReader

    def __call__(self, arguments: dict[str, Any]) -> Any:
        return self.read(json.dumps(arguments, ensure_ascii=False))


def _schemas(read: TypeReader | StructReader) -> tuple[dict[str, Any], dict[str, Any], dict[str, Grammar]]:
    """The schema of a type for prompts; that of the arguments that it reads; grammars of strings in them."""
    schema = exported(read)
    schema.pop("title", None)
    for property_schema in schema.get("properties", {}).values():
        if isinstance(property_schema, dict):
            property_schema.pop("title", None)
    parameters, places = nested(reading_schema(schema), {})
    return without_dialects(prompt_schema(schema)), parameters, places


_SECTION = re.compile(
    r"^(args|arguments|parameters|params|returns?|raises|yields|examples?|notes?):\s*$", re.I
)
_ENTRY = re.compile(r"^\s+\*{0,2}(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)$")
_FIELD = re.compile(r"^\s*:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")


def describe(docstring: str) -> tuple[str, dict[str, str]]:
    """The text before the first section, and what `Args:` entries or `:param x:` say of each parameter."""
    summary: list[str] = []
    notes: dict[str, str] = {}
    section, current = "", ""
    for line in inspect.cleandoc(docstring).splitlines():
        heading, entry, fielded = _SECTION.match(line), _ENTRY.match(line), _FIELD.match(line)
        if heading:
            section, current = heading.group(1).lower(), ""
        elif fielded:
            section, current = "fields", fielded.group(1)
            notes[current] = fielded.group(2).strip()
        elif line.lstrip().startswith(":") and section in ("", "fields"):
            section, current = "fields", ""
        elif section.startswith(("arg", "param")) and entry:
            current = entry.group(1)
            notes[current] = entry.group(2).strip()
        elif current and line.strip():
            notes[current] = f"{notes[current]} {line.strip()}".strip()
        elif not section:
            summary.append(line)
    return "\n".join(summary).strip(), {key: note for key, note in notes.items() if note}
