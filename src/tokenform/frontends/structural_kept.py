"""Tags that were read before, by their texts.

Purpose: an agent's requests come with the tags of the one before, but for one.  What a tag is behind the text
that leads to it is read once; a list of tags goes beside the form (`tools/linked.py`), and what stands around
them is the same for all lists.
Invariant: what is kept of a tag depends on its own text and its `Manner` alone.  Text that ends where what
stands around a tag says (`any_text`, tags in tags) is not kept, nor what raised.
Complexity: a look at each tag, and reading those that are new.
Memory: up to `WEIGHT` times the texts of tags; manners are bounded in bytes.
Rejected: what a tag says of its place and depth in a key (tags would be read anew where one is dropped).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from tokenform import _core
from tokenform.frontends import forms
from tokenform.frontends.json_text import loads
from tokenform.frontends.tools.kept import LastAsked
from tokenform.frontends.tools.shape import (
    Choice,
    Follows,
    Given,
    Json,
    Kept,
    Kind,
    Node,
    Regex,
    Seq,
    Slot,
    Special,
    Text,
    sequence,
)

WEIGHT = 40
TAGS = _core.KeptTools((48 << 20) // WEIGHT)
LEVELS = 8
"""Most levels of formats in a tag that is kept: what is read at one place must not be too deep at another."""

_LEAVES = ("const_string", "json_schema", "qwen_xml_parameter", "regex", "grammar")
_NUMBERS = count()
# Reads a tag: what follows the text that leads to it, and the rules that this names; None: it is not kept.
Read = Callable[[Any, str, str], "tuple[Node, Mapping[str, Node]] | None"]


class Manner:
    """What tags are read by beside their texts: the same for all that have the same special tokens, options
    of documents and text that leads to them.

    number: no other has had it.  follows: of what is kept, by what it is.
    """

    def __init__(self) -> None:
        self.number = next(_NUMBERS)
        self.kind = Kind(self.number, None)
        self.follows: WeakValueDictionary[Hashable, Follows] = WeakValueDictionary()


_MANNERS: LastAsked[Manner] = LastAsked(1 << 20)


def manner_of(special: tuple[str, ...], lead: str, options: Mapping[str, str]) -> Manner:
    """The manner; one that was not asked for in a long time is another one."""
    key = special, lead, tuple(sorted(options.items()))
    found = _MANNERS.get(key)
    if found is None:
        found = Manner()
        _MANNERS.put(key, found, 256 + 64 * len(special) + len(lead) + sum(map(len, special)))
    return found


def is_fixed(content: Any, levels: int = LEVELS) -> bool:
    """Whether a format says the same wherever it stands."""
    if not isinstance(content, Mapping):
        return False
    if content.get("type") in _LEAVES:
        return True
    elements = content.get("elements")
    parts = elements if content.get("type") in ("sequence", "or") and isinstance(elements, list) else ()
    return bool(parts) and levels > 0 and all(is_fixed(one, levels - 1) for one in parts)


def kept(manner: Manner, tags: Sequence[tuple[Any, str]], read: Read) -> list[Kept | None]:
    """What is kept of tags, each with its place; None: of this nothing can be.

    read: of a tag, its place and what the names of its rules begin with.
    """
    out: list[Kept | None] = [None] * len(tags)
    fixed = [at for at, (tag, _) in enumerate(tags) if is_fixed(tag.get("content"))]
    listed = TAGS.look([[manner.number, tags[at][0]] for at in fixed])
    made, fresh = listed.made()
    for number in fresh:
        one = _kept(manner, *tags[fixed[number]], read)
        if one is not None:
            made[number] = one
            listed.keep(number, one, one.of[1])
    for at, one in zip(fixed, made, strict=True):
        out[at] = one
    return out


def _kept(manner: Manner, tag: Any, place: str, read: Read) -> Kept | None:
    scope = f"tag {next(_NUMBERS)} "
    found = read(tag, place, scope)
    if found is None:
        return None
    node, rules = found
    first, *rest = node.parts if isinstance(node, Seq) else (node,)
    if type(first) is not Text or not rest:  # a branch begins with a text, and something follows
        return None
    again = partial(_again, read, place, scope, forms.written(tag))
    of = manner.kind, _core.OfTool(first.text)
    documents = [part for part in rest if type(part) is Json]
    parts = [Slot() if type(part) is Json else part for part in rest]
    key = None if len(documents) != 1 or rules else _key(Seq(tuple(parts)))
    if key is not None:
        own = documents[0]
        spelling = {**dict(own.options), "without": list(own.without)}
        key = key, forms.written(spelling)
        alike = Follows(partial(sequence, *parts), None, spelling)
        follows = manner.follows.setdefault(key, alike)
        return Kept(of, first.text, follows, forms.written(own.schema), again)
    return Kept.alone(of, first.text, node, rules, again)


def _again(read: Read, place: str, scope: str, text: str) -> Node:
    """The tag's node by itself."""
    found = read(loads(text), place, scope)
    assert found is not None
    return found[0]


def _key(node: Node) -> Hashable:
    """Equal for trees of the same texts; None: it is not known of a part."""
    match node:
        case Text() | Special() | Regex() | Slot():
            return node
        case Given():
            return forms.written(node.form)
        case Seq() | Choice():
            parts = tuple(map(_key, node.parts if isinstance(node, Seq) else node.options))
            return None if None in parts else (type(node), parts)
    return None
