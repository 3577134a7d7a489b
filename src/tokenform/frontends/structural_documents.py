"""Documents in structural tags: JSON, or arguments as a tool format writes them.

Purpose: parts of the type `json_schema`, with what each says of its order, whitespace and texts.
Invariant: the texts are those of the schema; what a style can't keep is refused by its keyword and place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tokenform.errors import ToolError, UnsupportedSchema
from tokenform.frontends.structural_texts import wrong
from tokenform.frontends.tools.elements import Nested
from tokenform.frontends.tools.formats import FORMATS
from tokenform.frontends.tools.layout import Elements, Tagged
from tokenform.frontends.tools.notation import Notation
from tokenform.frontends.tools.shape import (
    BLANK,
    LINE,
    AnyOrder,
    Choice,
    Json,
    Node,
    Regex,
    Repeat,
    Seq,
    sequence,
)
from tokenform.frontends.tools.tagged import Tags

STYLES = {
    "qwen_xml": "qwen3_coder",
    "minimax_xml": "minimax",
    "minimax_m3_xml": "minimax_m3",
    "deepseek_xml": "deepseek_v32",
    "deepseek_v4_1_xml": "deepseek_v41",
    "glm_xml": "glm47",
    "cohere_xml": "command_a",
    "kimi_k3_xml": "kimi_k3",
}
"""Styles of `json_schema` parts, and the tool formats whose arguments are written so."""

_RUN = 24
"""Whitespace characters in a row, where a tag does not say how many."""


def document(
    spec: Mapping[str, Any],
    place: str,
    without: tuple[str, ...],
    options: Mapping[str, str],
    rules: dict[str, Node],
    literal: Callable[[str], Node],
    scope: str,
) -> Node:
    """The node of a part.

    without: texts that may not occur in its strings and names.  options: those of the whole tag.
    rules: takes what is named, by names that begin with the scope.
    """
    own = _own_options(spec, options, place)
    style, schema = spec.get("style", "json"), spec["json_schema"]
    for text in without:
        if '"' in text or "\\" in text:
            raise wrong(
                f"{text!r} can't be excluded: strings write its quotes and backslashes with more", place
            )
    if style == "json":
        return Json(schema, without, options=tuple(own.items()))
    if style not in STYLES:
        raise wrong(f"the style {style!r} is not known; there are json, {', '.join(STYLES)}", place)
    named = dict.fromkeys(rules)
    order = own.get("order", options.get("order", "declared"))
    node = _styled(style, schema, order, without, place, rules, literal, scope)
    spacing = (("whitespace", own["whitespace"]),) if "whitespace" in own else ()
    space = _space(own.get("whitespace", options.get("whitespace", "")))
    again = _Spacing(space, spacing)
    for name in [name for name in rules if name not in named]:
        rules[name] = again(rules[name])
    return sequence(space, again(node))


def _space(whitespace: str) -> Node:
    """What may stand between two markers, and beside a value that is JSON."""
    counted = whitespace.removeprefix("at most ")
    most = {"compact": "0", "any": ""}.get(whitespace, counted if counted.isdigit() else f"{_RUN}")
    return Regex(rf"[ \t\r\n]{{0,{most}}}") if most != "0" else Seq(())


def _own_options(spec: Mapping[str, Any], options: Mapping[str, str], place: str) -> dict[str, str]:
    """What the part says itself of its order and whitespace."""
    own = {"order": "any"} if spec.get("any_order") else {}
    most = spec.get("max_whitespace_cnt")
    if most is None:
        return own
    if not isinstance(most, int) or isinstance(most, bool) or most < 0:
        raise wrong("max_whitespace_cnt is a number of characters", place)
    if most == 0 or options.get("whitespace") == "compact":
        return {**own, "whitespace": "compact"}
    return {**own, "whitespace": f"at most {most}" if most < 16 else "any"}


def _styled(
    style: str,
    schema: Any,
    order: str,
    without: tuple[str, ...],
    place: str,
    rules: dict[str, Node],
    literal: Callable[[str], Node],
    scope: str,
) -> Node:
    """Arguments as the tool format of a style writes them."""
    schema = {"type": "object"} if schema is True else schema
    if without and isinstance(schema, Mapping):  # the names of arguments hold no such text, either
        escaped = [re.sub(r"[\^$\\.*+?()\[\]{}|/]", r"\\\g<0>", text) for text in without]
        names = {"not": {"pattern": "|".join(escaped)}}
        schema = {**schema, "propertyNames": {"allOf": [schema.get("propertyNames", True), names]}}
    owner = f"{place}/json_schema"
    layout = next(part for part in FORMATS[STYLES[style]].wire.call if isinstance(part, Tagged | Elements))
    notation: Notation
    try:
        if isinstance(layout, Elements):
            layout = replace(layout, outer=(*layout.outer, *without))
            nested = Nested(layout, rules, order, literal, scope)
            nested.spelled = str
            if '="{name}"' in layout.member:
                nested.spelled, nested.key = _attribute, r'[^"<>&\x00-\x1f]{1,64}'
            notation = nested
        else:
            layout = replace(layout, markers=without)
            notation = Tags(layout, rules, order, lambda text: _marker(text, literal), scope)
        made = notation.arguments(schema, owner, False)
    except ToolError as error:
        raise wrong(str(error), place) from None
    if notation.loosened:  # nobody reads what is written, so nothing is left to a reader
        keyword = notation.loosened[0]
        raise UnsupportedSchema(
            f"{owner}: {keyword!r} can't be kept in the style {style!r}; choose json",
            keyword=keyword,
            pointer=owner,
        )
    return made


def _attribute(name: str) -> str:
    """A name within the quotes of an attribute."""
    for plain, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        name = name.replace(plain, written)
    return name


def _marker(text: str, literal: Callable[[str], Node]) -> Node:
    """A marker, in which whitespace may stand between two tags."""
    parts = [part for tag in re.split(r"(?<=>)\s*(?=<)", text) for part in (LINE, literal(tag))]
    return sequence(*parts[1:])


class _Spacing:
    """The same nodes with other whitespace and options of documents; what is shared stays shared."""

    def __init__(self, space: Node, options: tuple[tuple[str, str], ...]) -> None:
        self.space, self.options = space, options
        self._made: dict[int, Node] = {}
        self._kept: list[Node] = []  # keeps the ids from being used again

    def __call__(self, node: Node) -> Node:
        if id(node) not in self._made:
            self._kept.append(node)
            self._made[id(node)] = self._again(node)
        return self._made[id(node)]

    def _again(self, node: Node) -> Node:
        if node is BLANK or node is LINE:
            return self.space
        if isinstance(node, Json):
            return replace(node, options=self.options)
        if isinstance(node, Seq):
            return sequence(*map(self, node.parts))
        if isinstance(node, Choice):
            return Choice(tuple(map(self, node.options)))
        if isinstance(node, Repeat):
            return Repeat(self(node.item), node.least, node.most, node.separator)
        if isinstance(node, AnyOrder):
            members = tuple((self(member), required) for member, required in node.members)
            return replace(node, members=members, others=node.others and self(node.others))
        return node
