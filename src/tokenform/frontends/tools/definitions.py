"""Tools, however the caller describes them, as one kind of value.

Purpose: OpenAI-style JSON, pydantic models and Python functions become `Tool`s: a name, a description, the
JSON Schema of the arguments as one object, and the way from a dictionary of arguments to an instance or a
result.
Invariant: the names of a list of tools differ, and each `parameters` is a valid JSON Schema of an object.
Complexity: linear in the size of the definitions.
Source: OpenAI's function-calling reference; the Responses API's flat form; Model Context Protocol
(`inputSchema`).
Rejected: guessing a missing name, or numbering tools of the same name (the caller could not tell whose call
it is).
"""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Union

from tokenform import _core
from tokenform.errors import InvalidSchema, InvalidType, ToolError
from tokenform.frontends import forms
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.json_text import loads
from tokenform.frontends.meanings import meant, told
from tokenform.frontends.nested_json import nested
from tokenform.frontends.pattern_dialects import DIALECT, without_dialects
from tokenform.frontends.portable_types import portable
from tokenform.frontends.python_types import TypeReader, exported, reader_of
from tokenform.frontends.structs import StructReader
from tokenform.frontends.tools.judge import fault, has_item_lists, is_schema, report
from tokenform.frontends.tools.kept import TOOLS
from tokenform.frontends.tools.members import close

# Most levels of a schema of arguments; what is made of it goes through them one inside the other.
DEPTH = 256
ToolLike = Union["Tool", Mapping[str, Any], type, Callable[..., Any]]


class Definitions(tuple[dict[str, Any], ...]):
    """Definitions as prompts show them, with the format in which the tools are called."""

    format: Any

    def __new__(cls, definitions: Iterable[dict[str, Any]], format: Any) -> Definitions:
        made = super().__new__(cls, definitions)
        made.format = format
        return made

    def __reduce__(self) -> Any:
        return Definitions, (tuple(self), self.format)


@dataclass(frozen=True, eq=False)
class Tool:
    """One tool.

    Attributes:
        name: what a call names it by.
        description: for the prompt; may be empty.
        parameters: the JSON Schema of the arguments; its instances are objects.
        convert: turns a valid dictionary of arguments into what `instance` gives; None: the dictionary
            itself.
        function: what `call` calls with the converted arguments as keywords; None: the tool can't be called.
        strings_in: grammars of strings in the arguments by JSON Pointer, as `json_schema` takes them; for
            formats that write the arguments as one JSON object.
        shown: the parameters as prompts show them, where they are others.
        text: the parameters as JSON text.
        written: what formats made of it, by format and options.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    convert: Callable[[dict[str, Any]], Any] | None = field(default=None, repr=False)
    function: Callable[..., Any] | None = field(default=None, repr=False)
    strings_in: Mapping[str, Grammar] = field(default_factory=dict, repr=False)
    shown: Mapping[str, Any] | None = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    written: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.text:
            object.__setattr__(self, "text", forms.written(self.parameters))

    @classmethod
    def of_text(cls, name: str, description: str, text: str, closed: str | None) -> Tool:
        """The tool whose parameters are those of a text; closed: see there."""
        made = cls.__new__(cls)
        made.__dict__.update(name=name, description=description, text=text, strings_in={}, written={})
        if closed is not None:
            made.__dict__["closed"] = closed
        return made

    def __getattr__(self, name: str) -> Any:
        """The parameters of a text are read when somebody asks for them."""
        if name != "parameters":
            raise AttributeError(name)
        return self.__dict__.setdefault(name, loads(self.text))

    @cached_property
    def closed(self) -> str:
        """The parameters as JSON text, with members forbidden that they do not speak of."""
        return forms.written(close(self.parameters))

    def __reduce__(self) -> Any:
        given = (self.name, self.description, self.parameters, self.convert, self.function)
        return Tool, (*given, self.strings_in, self.shown, self.text)

    @property
    def report(self) -> list[str]:
        """What is ignored or loosened of the parameters, and keys of them that look misspelt."""
        return self.lines(report(self.text))

    def lines(self, report: Iterable[str]) -> list[str]:
        """Lines of a report with the name of the tool."""
        return [f"tool {self.name!r}: {line}" for line in report]

    @cached_property
    def told(self) -> list[str]:
        """What reading the parameters told: its report without what nothing satisfies."""
        for made in self.written.values():
            if getattr(made, "schema", None) is not None:
                for branch in made.made.values():
                    return self.lines(branch.report)
        return self.report

    def validate(self, arguments: Any) -> None:
        """Raise ToolError, with the JSON Pointer of the fault, unless the arguments satisfy the schema."""
        if not isinstance(arguments, dict):
            raise ToolError(f"the arguments of {self.name!r} must be a JSON object")
        found = fault(arguments, self.text)
        if found is not None:
            place, message = found
            where = f" at {place}" if place else ""
            raise ToolError(
                f"the arguments of {self.name!r} do not satisfy its schema{where}: {message}", pointer=place
            )

    @cached_property
    def takes_none(self) -> bool:
        """Whether a call without arguments satisfies the schema."""
        try:
            return fault({}, self.text) is None
        except ToolError:
            return False

    def instance(self, arguments: dict[str, Any]) -> Any:
        """The arguments as the type that the tool was made from (a model instance, converted keywords)."""
        if self.convert is None:
            return arguments
        try:
            return self.convert(arguments)
        except (ValueError, InvalidType) as error:
            raise ToolError(f"the arguments of {self.name!r} were refused by its type: {error}") from None

    def call(self, arguments: dict[str, Any]) -> Any:
        """The function's result; ToolError where the tool is no function."""
        if self.function is None:
            raise ToolError(f"the tool {self.name!r} has no function to call; make it from a Python function")
        return self.function(**self.instance(arguments))

    def to_openai(self) -> dict[str, Any]:
        """The definition as chat templates take it; the caller's own."""
        return copy.deepcopy(self.definition)

    @cached_property
    def definition(self) -> dict[str, Any]:
        """The same for all that have the tool, which nobody may change."""
        function = {"name": self.name, "description": self.description, "parameters": self._parameters_shown}
        return {"type": "function", "function": function}

    @cached_property
    def _parameters_shown(self) -> Any:
        shown = self.parameters if self.shown is None else self.shown
        # few speak of dialects: a look at the text is a fraction of the copy
        if self.shown is None and DIALECT not in self.text:
            return shown
        return without_dialects(shown)


# What becomes of a tool whose parameters can't be read or kept, see `tools`.
ON_BAD_TOOL = ("raise", "any", "omit")
_ANY_OBJECT = {"type": "object", "additionalProperties": True}


def any_arguments(tool: Tool) -> Tool:
    """The tool with any JSON object as its arguments; prompts show what it was given."""
    shown = tool.parameters if tool.shown is None else tool.shown
    return replace(tool, parameters=_ANY_OBJECT, strings_in={}, shown=shown, text="")


class Tools(tuple[Tool, ...]):
    """Tools that were read: their names differ."""

    @cached_property
    def by_name(self) -> dict[str, Tool]:
        """The tools under their names."""
        return {tool.name: tool for tool in self}


def listed(tools: Iterable[ToolLike] | Mapping[str, Any]) -> list[Any]:
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
    found: list[Any] | None = None,
) -> Tools:
    """The tools of a list of definitions, or of a mapping with the key "tools".

    put_aside: is told of a definition whose parameters are no schema, which is then read with any arguments.
    found: what is kept of each, as `TOOLS.look` says.

    Raises:
        ToolError: a tool without a name, two of the same name, or something that is no tool.
        InvalidSchema: the arguments' schema is none.
        InvalidType: a type or function that no schema can be made of.
    """
    if isinstance(tools, Tools):
        return tools
    given = listed(tools)
    if found is None:
        found = TOOLS.look(given)[2]
    result = Tools(
        [
            one if type(one) is Tool else _new_tool(given[index], index, put_aside, one)
            for index, one in enumerate(found)
        ]
    )
    if len(result.by_name) == len(result):
        return result
    first: dict[str, int] = {}
    for index, tool in enumerate(result):
        if first.setdefault(tool.name, index) != index:
            raise ToolError(
                f"tools {first[tool.name]} and {index} have the same name {tool.name!r}; rename one"
            )
    return result


def _new_tool(tool: Any, index: int, put_aside: Callable[[Tool, Exception], None] | None, found: Any) -> Tool:
    """found: the number of a definition, and what it says where it is plain; None: it has none."""
    number, plain = found or (None, None)
    if plain:
        made = Tool.of_text(*plain)
    else:
        try:
            made = _read_tool(tool, index)
        except InvalidSchema as error:
            if put_aside is None or not isinstance(tool, Mapping):
                raise
            made, number = _from_json(tool, index, bare=True), None
            put_aside(made, error)
        try:
            f"{made.name}{made.description}".encode()
        except UnicodeEncodeError:
            raise ToolError(f"the name or description of tool {index} holds half a surrogate pair") from None
    if number is not None:
        TOOLS.keep(number, made)
    return made


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
        shown = parameters if isinstance(parameters, Mapping) and _written(parameters) else None
        return Tool(name, description, _ANY_OBJECT, shown=shown)
    checked, text = _checked(parameters, name)
    return Tool(name, description, checked, text=text)


def _written(parameters: Any) -> bool:
    """Whether it is JSON at all."""
    try:
        json.dumps(parameters, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return not _deeper(parameters, DEPTH)


def _checked(parameters: Any, name: str) -> tuple[Mapping[str, Any], str]:
    """The schema of an object, as given where it is one, and its text; or an error that names the tool."""
    if parameters is None:
        parameters = {"type": "object", "properties": {}}
    if not isinstance(parameters, Mapping):
        raise InvalidSchema(f"the parameters of tool {name!r} must be a JSON Schema object")
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
    fault = _fault(text)
    if fault is not None:
        place, message = fault
        raise InvalidSchema(
            f"the parameters of tool {name!r} are no JSON Schema, at {place or '/'}: {message}", pointer=place
        )
    if parameters.get("type") == "object":
        return parameters, text
    plain = loads(text)
    if plain.get("type", "object") not in ("object", ["object"]):
        raise InvalidSchema(f'the parameters of tool {name!r} must have "type": "object"', pointer="/type")
    plain["type"] = "object"
    return plain, forms.written(plain)


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
    convert = _converter(read)
    return Tool(name, description, checked, convert=convert, strings_in=places, shown=shown, text=text)


def _own_docstring(model: type) -> bool:
    """Whether the docstring is the author's (a dataclass without one gets its signature as docstring)."""
    return not str(model.__doc__).startswith(f"{model.__name__}(")


def _from_function(function: Callable[..., Any], index: int) -> Tool:
    """A function: its parameters are the arguments, its docstring describes it and them."""
    import pydantic

    name = getattr(function, "__name__", "")
    if not name or name == "<lambda>":
        raise ToolError(
            f"tool {index} is a function without a name; define it with def, or give a definition"
        )
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, ValueError, TypeError) as error:
        raise InvalidType(f"the signature of {name!r} can't be read: {error}") from None
    summary, notes = describe(function.__doc__ or "")
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
    shown, parameters, places = _schemas(read)
    checked, text = _checked(parameters, name)
    return Tool(name, summary, checked, _converter(read), function, places, shown, text)


def _converter(read: TypeReader | StructReader) -> Callable[[dict[str, Any]], Any]:
    """From arguments to what the type's reader makes of them."""
    return lambda arguments: read(json.dumps(arguments, ensure_ascii=False))


def _schemas(read: TypeReader | StructReader) -> tuple[dict[str, Any], dict[str, Any], dict[str, Grammar]]:
    """The schema of a type for prompts; that of the arguments that it reads; grammars of strings in them."""
    schema = exported(read)
    schema.pop("title", None)
    for property_schema in schema.get("properties", {}).values():
        if isinstance(property_schema, dict):
            property_schema.pop("title", None)
    parameters, places = nested(meant(schema), {})
    return without_dialects(told(schema)), parameters, places


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
