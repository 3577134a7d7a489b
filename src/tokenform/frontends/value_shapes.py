"""What a Python type makes of a document while it is written: partial instances, and validators asked early.

Purpose: `JsonReader` reads a document; the shapes made here turn its values into those of the type (`typed`),
and run each validator written in Python as soon as the value that it judges is complete.
Invariant: a document is refused early only where reading the whole would refuse it: a value is judged by
the very part of pydantic's schema that will judge it, with the fields declared before it; where that part
can't be told yet (an undecided union, what a "before" validator will rewrite) nothing inside is judged,
only the whole.
Complexity: a value is validated when it ends, and again with each container around it that has rules of its
own.
Source: the node types of pydantic-core's `core_schema`.
Rejected: pydantic's own partial validation (no models, and a pass from the start for every piece); validators
found by their decorators (what `Annotated`, parent classes and dataclasses bring would be missed).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pydantic_core

from tokenform.errors import InvalidType, LimitExceeded
from tokenform.frontends.json_pointer import pointer_of
from tokenform.frontends.json_reader import MISSING, Frame, JsonReader
from tokenform.frontends.json_text import plain_integers
from tokenform.frontends.partial_class import partial_class
from tokenform.frontends.type_rules import CODE, MAPPINGS, judged

Core = Mapping[str, Any]

_RECORDS = ("model-fields", "dataclass-args", "typed-dict")
_OBJECTS = ("model", "dataclass", "typed-dict", *MAPPINGS, "model-fields", "dataclass-args", "tagged-union")
_ARRAYS = ("list", "set", "frozenset", "tuple", "generator", "call", "deque", "named-tuple")
_SCALARS = (
    "str", "int", "float", "bool", "none", "decimal", "date", "time", "datetime", "timedelta", "bytes",
    "enum", "literal", "uuid", "url", "multi-host-url", "complex",
)  # fmt: skip
_DEEP = 200  # wrappers around one node


def validated(validator: Any, text: str, label: str, pointer: str = "") -> Any:
    """The value of a JSON text.

    Raises:
        InvalidType: it is refused; `pointer` is where it stands in the document.
        Whatever else a validator of the caller's raises.
    """
    try:
        return validator.validate_json(text)
    except pydantic_core.ValidationError as error:
        try:  # JSON Schema's integers may be written as 1.0 or 1e3, pydantic's may not
            return validator.validate_json(plain_integers(text))
        except (pydantic_core.ValidationError, LimitExceeded):
            pass
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = pointer + pointer_of(first["loc"])
        raise InvalidType(
            f"{label} refuses the document{place and f' at {place}'}: {first['msg']}.",
            pointer=place,
        ) from error


def arguments_of(instance: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """What a function is to be called with; defaults are left to it."""
    return {names[field]: getattr(instance, field) for field in names if field in instance.model_fields_set}


class Shapes:
    """The shapes of one type.

    Args:
        schema: pydantic's core schema.
        label: what errors call the type.
        in_order: properties are written in the order in which they are declared.
        arguments: of a function: the names of its parameters by field; its values are mappings.
    """

    def __init__(
        self, schema: Core, label: str, *, in_order: bool = True, arguments: Mapping[str, str] | None = None
    ) -> None:
        self.label, self.in_order, self.arguments = label, in_order, arguments
        self._definitions: list[Any] = []
        self._by_ref: dict[str, Core] = {}
        while schema["type"] == "definitions":
            self._definitions += schema["definitions"]
            schema = schema["schema"]
        for one in self._definitions:
            self._by_ref[one["ref"]] = one
        for one in nodes([schema, *self._definitions]):
            if "ref" in one:
                self._by_ref.setdefault(one["ref"], one)
        self._schema = schema
        self._made: dict[tuple[int, bool, bool], Typed | None] = {}
        self._coded: dict[int, bool] = {}

    @property
    def coded(self) -> bool:
        """Whether any rule is Python code, or another that no mask holds."""
        return self.has_code(self._schema)

    def typed(self) -> Typed:
        """Values of the type, growing."""
        made = self.shape(self._schema, {}, show=True)
        assert made is not None
        made.arguments = self.arguments
        return made

    def checks(self) -> Typed | None:
        """Only the validators written in Python; values stay as JSON has them.  None where there are none."""
        return self.shape(self._schema, {}, show=False)

    def shape(self, schema: Core, config: Core, *, show: bool, quiet: bool = False) -> Typed | None:
        """The shape of a node; None where its values are as JSON has them."""
        key = (id(schema), show, quiet)
        if key not in self._made:
            if not show and (quiet or not self.has_code(schema)):
                self._made[key] = None
            else:
                self._made[key] = made = Typed(self, schema, config, show, quiet)
                made.prepare()
        return self._made[key]

    def validator(self, schema: Core, config: Core) -> pydantic_core.SchemaValidator:
        own: Any = (
            {key: value for key, value in schema.items() if key != "ref"} if "ref" in schema else schema
        )
        if self._by_ref:
            needed = self._referred(own)
            if needed:
                own = {"type": "definitions", "schema": own, "definitions": needed}
        settings: Any = dict(config) or None
        return pydantic_core.SchemaValidator(own, settings)

    def _referred(self, schema: Core) -> list[Any]:
        found: dict[str, Core] = {}
        todo: list[Core] = [schema]
        inside = {one["ref"] for one in nodes([schema]) if "ref" in one}
        while todo:
            for one in nodes([todo.pop()]):
                name = one.get("schema_ref") if one.get("type") == "definition-ref" else None
                if name is not None and name not in found and name not in inside:
                    found[name] = self._by_ref[name]
                    todo.append(self._by_ref[name])
        return list(found.values())

    def resolved(self, schema: Core) -> Core:
        """The node that a reference stands for."""
        for _ in range(_DEEP):
            if schema["type"] != "definition-ref":
                break
            schema = self._by_ref[schema["schema_ref"]]
        return schema

    def has_code(self, schema: Core) -> bool:
        """Whether a rule of this node or of one inside is kept by no mask."""
        known = self._coded.get(id(schema))
        if known is None:
            seen: set[str] = set()
            todo, known = [schema], False
            while todo and not known:
                for one in nodes([todo.pop()]):
                    known = known or judged(one)
                    name = one.get("schema_ref") if one.get("type") == "definition-ref" else None
                    if name is not None and name not in seen:
                        seen.add(name)
                        todo.append(self._by_ref[name])
            self._coded[id(schema)] = known
        return known


class Typed:
    """The values at one place of a type; see `json_reader.Shape`.

    Args:
        shapes: those of the type.
        schema: this place's.
        config: of the model around it.
        show: values are made; else they are only judged.
        quiet: nothing inside is judged, for the whole will be.
    """

    def __init__(self, shapes: Shapes, schema: Core, config: Core, show: bool, quiet: bool) -> None:
        self.shapes, self.schema, self.show, self.quiet = shapes, schema, show, quiet
        self._outer = self.config = config
        self.growing = False
        self.field: tuple[Core, str, Core] | None = (
            None  # (record, field, config) of one that asks for others
        )
        self.arguments: Mapping[str, str] | None = None
        self._validator: Any = None
        self._judged = False  # by rules of its own, beside those of what is inside
        self._base: Core = schema
        self._inside_quiet = quiet
        self._record: Core | None = None
        self._names: dict[str, str] = {}  # field by the key in the document
        self._plain = False
        self._asking: dict[str, Typed] = {}

    def prepare(self) -> None:
        """Looks through what stands around the node itself."""
        schema = self.schema
        for _ in range(_DEEP):
            kind = schema["type"]
            if kind == "definition-ref":
                schema = self.shapes.resolved(schema)
                continue
            if kind in ("model", "dataclass"):
                break
            if kind in CODE:
                self._judged = True
                if kind == "function-plain":
                    break
                self._inside_quiet = self._inside_quiet or kind != "function-after"
            elif kind == "json-or-python":
                schema = schema["json_schema"]
                continue
            elif kind == "lax-or-strict":
                schema = schema["strict_schema" if self.config.get("strict") else "lax_schema"]
                continue
            elif kind not in ("default", "nullable", "custom-error"):
                break
            schema = schema["schema"]
        self._base = schema
        kind = schema["type"]
        if kind in ("model", "dataclass"):
            self.config = schema.get("config") or {}
            self._judged = self._judged or bool(schema.get("post_init")) or bool(schema.get("custom_init"))
            self._inside_quiet = self._inside_quiet or bool(schema.get("custom_init"))
            inner = self.shapes.resolved(schema["schema"])
            while inner["type"] in CODE and inner["type"] != "function-plain":
                self._judged = True
                self._inside_quiet = self._inside_quiet or inner["type"] != "function-after"
                inner = self.shapes.resolved(inner["schema"])
            if schema.get("root_model"):
                self._inside_quiet, self._judged = True, True
            else:
                self._record = inner if inner["type"] in _RECORDS else None
        elif kind == "typed-dict":
            self.config = schema.get("config") or self.config
            self._record = schema
        elif kind not in ("list", "dict", "tagged-union"):
            self._judged = self._judged or self.shapes.has_code(schema)
        elif judged(schema) or ("keys_schema" in schema and self.shapes.has_code(schema["keys_schema"])):
            self._judged = True
            self._inside_quiet = self._inside_quiet or kind == "tagged-union"
        if self._record is not None:
            self._read_names(self._record)
        self.growing = self.show and kind == "str"
        self._plain = (
            kind in ("str", "bool", "none", "any")
            and not self._judged
            and schema.keys() <= {"type", "metadata"}
        )

    def _read_names(self, record: Core) -> None:
        for name, one in _fields(record):
            alias = one.get("validation_alias", name)
            if isinstance(alias, str):
                self._names[alias] = name
            else:  # a path into the document: the field is known when all is
                self._judged, self._inside_quiet = True, True
        if not self.shapes.in_order:
            self._judged = self._judged or self.shapes.has_code(record)

    # ---- what the reader asks ------------------------------------------------------------------------

    def child(self, frame: Frame) -> Typed | None:
        base, key = self._base, frame.place
        if self._record is not None:
            name = self._names.get(str(key))
            return None if name is None else self._field(name)
        if base["type"] == "list" and isinstance(key, int):
            return self._part(base.get("items_schema"))
        if base["type"] == "dict" and isinstance(key, str):
            return self._part(base.get("values_schema"))
        chosen = self._chosen(frame.items, isinstance(key, int))
        return None if chosen is None else chosen.child(frame)

    def opened(self, items: Any) -> Any:
        base = self._base
        if not self.show:
            return items
        if self._record is not None and not isinstance(items, list):
            return self._instance({self._names.get(key, key): value for key, value in items.items()})
        if base["type"] in ("list", "dict", "any"):
            return items
        chosen = self._chosen(items, isinstance(items, list))
        return MISSING if chosen is None else chosen.opened(items)

    def closed(self, value: Any, reader: JsonReader, start: int, end: int) -> Any:
        if self.quiet or self._plain:
            return value
        if not self._judged and (not self.show or (self._base["type"] in ("list", "dict") and self._lax)):
            return value
        path = reader.path
        label, pointer = self.shapes.label, pointer_of(path)
        if self.field is None:
            if self._validator is None:
                self._validator = self.shapes.validator(self.schema, self._outer)
            made = validated(self._validator, reader.slice(start, end), label, pointer)
        else:
            made = self._beside(reader, end, label, path)
        if self.show and self.arguments is not None:
            return arguments_of(made, self.arguments)
        return made if self.show else value

    # ---- parts ---------------------------------------------------------------------------------------

    @property
    def _lax(self) -> bool:
        """Whether the container has no rules beside those of its values."""
        base = self._base
        keys = (base.get("keys_schema") or {}).get("type", "str")
        return keys in ("str", "any") and not any(
            name in base for name in ("min_length", "max_length", "strict")
        )

    def _part(self, schema: Core | None) -> Typed | None:
        if schema is None:
            return None
        return self.shapes.shape(schema, self.config, show=self.show, quiet=self._inside_quiet)

    def _field(self, name: str) -> Typed | None:
        assert self._record is not None
        schema = dict(_fields(self._record))[name]["schema"]
        asks = _asks_for_others(self.shapes, schema)
        if not asks:
            return self._part(schema)
        if not self.shapes.in_order:
            return self.shapes.shape(schema, self.config, show=self.show, quiet=True)
        known = self._asking.get(name)
        if known is None:
            known = Typed(self.shapes, schema, self.config, self.show, self._inside_quiet)
            known.prepare()
            known._inside_quiet = known._inside_quiet or asks == "inside"
            known._judged, known.field = True, (self._record, name, self.config)
            self._asking[name] = known
        return None if not self.show and known.quiet else known

    def _beside(self, reader: JsonReader, end: int, label: str, path: tuple[str | int, ...]) -> Any:
        """The value of a field whose validator looks at the fields before it."""
        assert self.field is not None
        record, name, config = self.field
        if self._validator is None:
            self._validator = self.shapes.validator(_up_to(record, name), config)
        text = reader.slice(reader.frames[-1].start, end) + "}"
        made = validated(self._validator, text, label, pointer_of(path[:-1]))
        return (made[0] if isinstance(made, tuple) else made)[name]

    def _chosen(self, items: Any, array: bool) -> Typed | None:
        """The member of a union that the values so far leave; None for several."""
        base = self._base
        if base["type"] == "tagged-union":
            tag = base["discriminator"]
            value = items.get(tag) if isinstance(tag, str) and isinstance(items, dict) else None
            value = getattr(value, "value", value)
            choice = base["choices"].get(value) if isinstance(value, str | int) else None
            return self._part(choice) if choice is not None else None
        if base["type"] != "union":
            return None
        choices = [one[0] if isinstance(one, tuple) else one for one in base["choices"]]
        left = [one for one in choices if self._may_be(one, items, array)]
        if len(left) != 1:
            return None
        certain = sum(self._may_be(one, None, array) for one in choices) == 1
        return self.shapes.shape(
            left[0], self.config, show=self.show, quiet=self._inside_quiet or not certain
        )

    def _may_be(self, schema: Core, items: Any, array: bool) -> bool:
        """Whether a member of a union may be what these values (None: any) begin."""
        probe = self.shapes.shape(schema, self.config, show=True, quiet=True)
        assert probe is not None
        base = probe._base
        if base["type"] in _SCALARS or base["type"] in (_OBJECTS if array else _ARRAYS):
            return False
        if items is None or probe._record is None or array:
            return True
        fields = dict(_fields(probe._record))
        for key, value in items.items():
            name = probe._names.get(key)
            if name is None:
                return False
            inner = self.shapes.resolved(fields[name]["schema"])
            if inner["type"] == "literal" and value not in inner["expected"]:
                return False
        return True

    def _instance(self, fields: dict[str, Any]) -> Any:
        """An instance of which only these fields are known; the others are None."""
        assert self._record is not None
        base, blank = self._base, {name: None for name, _ in _fields(self._record)}
        if self._record.get("extra_behavior") != "allow":  # the reader drops what the type doesn't declare
            fields = {name: value for name, value in fields.items() if name in blank}
        if self.arguments is not None:
            return {self.arguments[name]: value for name, value in fields.items()}
        if base["type"] == "typed-dict":
            return fields
        kind = partial_class(base["cls"])
        made = kind.__new__(kind)
        if base["type"] == "dataclass":
            for one in dataclasses.fields(kind):  # those that no document has, too
                blank.setdefault(one.name, None)
            for name in blank:
                object.__setattr__(made, name, fields.get(name))
            return made
        object.__setattr__(made, "__dict__", blank | {k: v for k, v in fields.items() if k in blank})
        object.__setattr__(made, "__pydantic_fields_set__", {name for name in fields if name in blank})
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made


def _fields(record: Core) -> Iterator[tuple[str, Core]]:
    """The fields of a record in the order in which they are declared."""
    if record["type"] == "dataclass-args":
        yield from ((one["name"], one) for one in record["fields"])
    else:
        yield from record["fields"].items()


def _up_to(record: Core, last: str) -> Core:
    """The record with the fields up to one, whatever else the document has."""
    fields: dict[str, Any] = {}
    dictionary = record["type"] == "typed-dict"
    for name, one in _fields(record):
        kept = {key: value for key, value in one.items() if key in ("schema", "validation_alias", "required")}
        fields[name] = kept | {"type": "typed-dict-field" if dictionary else "model-field"}
        if name == last:
            break
    return {
        "type": "typed-dict" if dictionary else "model-fields",
        "fields": fields,
        "extra_behavior": "ignore",
    }


def _asks_for_others(shapes: Shapes, schema: Core) -> str:
    """Whether a validator of a field gets the fields before it: "itself", "inside" a list, or not at all."""
    found, todo = "", [(schema, "itself")]
    seen: set[int] = set()
    while todo:
        node, where = todo.pop()
        node = shapes.resolved(node)
        if id(node) in seen or node["type"] in ("model", "dataclass", "typed-dict"):
            continue
        seen.add(id(node))
        if node["type"] in CODE and node["function"]["type"] == "with-info":
            found = where if found != "inside" else found
        through = node["type"] in (*CODE, "default", "nullable", "custom-error")
        todo += [(part, where if through else "inside") for part in _children(node)]
    return found


_UNREAD = ("metadata", "serialization", "cls", "config", "computed_fields", "function", "default", "expected")


def _children(node: Core) -> list[Core]:
    """The nodes right inside a node; fields and the like are looked through."""
    found: list[Core] = []
    todo: list[Any] = [value for key, value in node.items() if key not in _UNREAD]
    while todo:
        part = todo.pop()
        if isinstance(part, Mapping):
            kind = part.get("type")
            if not isinstance(kind, str):  # fields or choices by name
                todo += part.values()
            elif kind.endswith("-field"):
                todo.append(part["schema"])
            else:
                found.append(part)
        elif isinstance(part, list | tuple):
            todo += part
    return found


def nodes(roots: list[Any]) -> Iterator[Core]:
    """Every node below these, themselves included, without following references."""
    todo = list(roots)
    while todo:
        node = todo.pop()
        yield node
        todo += _children(node)
