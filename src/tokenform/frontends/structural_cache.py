"""A cache of the tags that were read before, by their texts.

Purpose: an agent's request has the tags of the one before, but for one.  What follows the text that leads to
a tag is read once.  A list of tags goes beside the form (`tools/linked.py`); the text around them is the same
for all lists.
Invariant: what is cached of a tag depends on its own text and its `TagContext` alone.  Not cached: text whose
end depends on what stands around the tag (`any_text`, tags in tags), and what raised.
Complexity: a lookup for each tag, and reading the new ones.
Memory: up to `WEIGHT` times the texts of tags; contexts are bounded in bytes.
Rejected: the tag's place and depth in its key (tags would be read anew where one is dropped).
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
from tokenform.frontends.tools.cache import LruCache
from tokenform.frontends.tools.shape import (
    CachedOption,
    Choice,
    Follows,
    Given,
    Json,
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
"""Most levels of formats in a cached tag: what is read at one place must not be too deep at another."""

_LEAVES = ("const_string", "json_schema", "qwen_xml_parameter", "regex", "grammar")
_NUMBERS = count()
# Reads a tag: what follows the text that leads to it, and the rules that this names; None: it is not cached.
Read = Callable[[Any, str, str], "tuple[Node, Mapping[str, Node]] | None"]


class TagContext:
    """What reading a tag depends on beside its text: special tokens, options of documents, the text that
    leads to the tag.

    number: unique.  follows: what follows cached tags, by its form.
    """

    def __init__(self) -> None:
        self.number = next(_NUMBERS)
        self.kind = Kind(self.number, None)
        self.follows: WeakValueDictionary[Hashable, Follows] = WeakValueDictionary()


_CONTEXTS: LruCache[TagContext] = LruCache(1 << 20)


def tag_context(special: tuple[str, ...], prefix: str, options: Mapping[str, str]) -> TagContext:
    """The context; one that was not used for long is made anew."""
    key = special, prefix, tuple(sorted(options.items()))
    found = _CONTEXTS.get(key)
    if found is None:
        found = TagContext()
        _CONTEXTS.put(key, found, 256 + 64 * len(special) + len(prefix) + sum(map(len, special)))
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


def cached_tags(
    context: TagContext, tags: Sequence[tuple[Any, str]], read: Read
) -> list[CachedOption | None]:
    """The cached options of tags, each tag with its place; None where a tag can't be cached.

    read: gets a tag, its place and the prefix of its rules' names.
    """
    out: list[CachedOption | None] = [None] * len(tags)
    fixed = [at for at, (tag, _) in enumerate(tags) if is_fixed(tag.get("content"))]
    listed = TAGS.look([[context.number, tags[at][0]] for at in fixed])
    made, fresh = listed.made()
    for number in fresh:
        one = _cached_tag(context, *tags[fixed[number]], read)
        if one is not None:
            made[number] = one
            listed.keep(number, one, one.of[1])
    for at, one in zip(fixed, made, strict=True):
        out[at] = one
    return out


def _cached_tag(context: TagContext, tag: Any, place: str, read: Read) -> CachedOption | None:
    scope = f"tag {next(_NUMBERS)} "
    found = read(tag, place, scope)
    if found is None:
        return None
    node, rules = found
    first, *rest = node.parts if isinstance(node, Seq) else (node,)
    if type(first) is not Text or not rest:  # a branch begins with a text, and something follows
        return None
    again = partial(_again, read, place, scope, forms.written(tag))
    of = context.kind, _core.OfTool(first.text)
    documents = [part for part in rest if type(part) is Json]
    parts = [Slot() if type(part) is Json else part for part in rest]
    key = None if len(documents) != 1 or rules else _key(Seq(tuple(parts)))
    if key is not None:
        own = documents[0]
        spelling = {**dict(own.options), "without": list(own.without)}
        key = key, forms.written(spelling)
        alike = Follows(partial(sequence, *parts), None, spelling)
        follows = context.follows.setdefault(key, alike)
        return CachedOption(of, first.text, follows, forms.written(own.schema), again)
    return CachedOption.alone(of, first.text, node, rules, again)


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
