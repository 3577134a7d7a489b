"""Lists of tools put into the form of a turn, each tool read by the engine once.

Purpose: the text around the calls is the same for all lists of tools with the same settings, so its form is
cached.  A tool's calls are a branch of its own; the list of branches goes beside the form.
Invariant: the texts are those of the tree (`compiled.py`).
Complexity: a form costs its tree once; a list costs a lookup for each of its tools, and reading the new ones.
Memory: a branch lives as long as its tool; forms are bounded in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenform import _core
from tokenform.errors import InvalidGrammar
from tokenform.frontends import forms
from tokenform.frontends.forms import Form
from tokenform.frontends.tools.cache import LruCache
from tokenform.frontends.tools.call import Named
from tokenform.frontends.tools.compiled import Compiler, known_options
from tokenform.frontends.tools.grammar import Builder
from tokenform.frontends.tools.shape import CachedOption, Choice, Follows, Node, OneOf, Seq, Shape

# Lists of branches, which a form names by their numbers.
Lists = list[_core.Branches]
# The place of an option, its text, the schema in its slot as JSON text.
Slotted = tuple[int, str, "str | None"]


def branched_form(shape: Shape, json_options: Mapping[str, str] | None = None) -> tuple[Form, Lists]:
    """The form of a tree whose cached options are branches, and the lists of branches."""
    options = known_options(json_options)
    linker = Linker(options)
    return Compiler(shape, options, linker).form(), linker.lists


@dataclass(frozen=True)
class _Laid:
    """The form of turns whose trees differ in the options of lists alone.

    text: as JSON.  lists: what they are of.  specials: of their options.
    """

    text: str
    lists: tuple[Any, ...]
    specials: frozenset[str]


_LAID: LruCache[_Laid] = LruCache(4 << 20)


def turn_form(
    builder: Builder, json_options: Mapping[str, str], extra: Mapping[str, str] | None = None
) -> tuple[str, Lists]:
    """The form of a turn as JSON text, and its lists of branches.

    extra: further options of its documents, which callers can't choose.
    """
    options = {**known_options(json_options), **(extra or {})}
    key = builder.key and (builder.key, tuple(sorted(options.items())))
    if key and (laid := _LAID.get(key)) is not None:
        linker = Linker(options)
        made = {calls: linker.calls(builder, calls) for calls in laid.lists}
        lists = [branches for calls in laid.lists if (branches := made[calls])]
        if len(lists) == len(laid.lists) and _specials(lists) == laid.specials:
            return laid.text, lists
    linker = Linker(options)
    text = forms.written(Compiler(builder.shape(), options, linker).form())
    if key and None not in linker.listed:
        _LAID.put(key, _Laid(text, tuple(linker.listed), _specials(linker.lists)), len(text))
    return text, linker.lists


def _specials(lists: Lists) -> frozenset[str]:
    """The special tokens of branches."""
    return frozenset[str]().union(*(branches.specials for branches in lists))


class Linker:
    """Reads cached options, for one spelling of documents.

    Attributes:
        lists: of branches.
        listed: what they are of; None: tools that are written into the form.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options, self._spelling = dict(options), tuple(sorted(options.items()))
        self.lists: Lists = []
        self.listed: list[Any] = []

    def number(self, node: Choice) -> int | None:
        """The number of the list of the cached options; None: they are to be written out."""
        branches = self.branched(node.options)
        if branches is None:
            return None
        others = any(type(option) is not CachedOption for option in node.options)
        self.lists.append(branches)
        self.listed.append(node.of if isinstance(node, OneOf) and not others else None)
        return len(self.lists) - 1

    def written_out(self, node: Choice) -> None:
        """Says that tools are a part of the form, which is theirs then."""
        if isinstance(node, OneOf):
            self.listed.append(None)

    def branched(self, options: Sequence[Node]) -> _core.Branches | None:
        """The cached options, read where they are new; None: they can't be branches."""
        branchable = [option for option in options if type(option) is CachedOption]
        if not branchable:
            return None
        number = branchable[0].of[0].spelling_number(self._spelling)
        listed = _core.ListedTools.of([option.of[1] for option in branchable])
        alike: dict[Follows, list[Slotted]] = {}
        separate: list[tuple[int, CachedOption]] = []
        for at in listed.missing(number):
            option = branchable[at]
            if option.schema is None:
                separate.append((at, option))
            else:
                alike.setdefault(option.follows, []).append((at, option.head, option.schema))
        for follows, texts in alike.items():
            self.read(listed, number, follows, texts)
        if separate:
            self.read_each(listed, number, separate)
        return listed.branches(number)

    def calls(self, builder: Builder, calls: Named) -> _core.Branches | None:
        """The calls of each tool, as `branched` of their options; None: they can't all be branches."""
        kind, listed = builder.kind(calls), builder.known.listed
        if kind is None or not kind.follows:
            options = builder.options(calls)
            return self.branched(options) if all(type(option) is CachedOption for option in options) else None
        number = kind.spelling_number(self._spelling)
        fresh = [(at, builder.known[at]) for at in listed.missing(number)]
        if any(tool.strings_in for _, tool in fresh):
            return None
        if fresh:
            self.read(listed, number, kind.follows, [(at, *builder.texts(calls, tool)) for at, tool in fresh])
        return listed.branches(number)

    def read(
        self, listed: _core.ListedTools, number: int, follows: Follows, texts: Sequence[Slotted]
    ) -> None:
        """Reads those of a list that go on alike, unless they can't be branches."""
        rest = self.rest(follows)
        if rest is not None:
            listed.read(number, rest, texts)

    def rest(self, follows: Follows) -> _core.Rest | None:
        """What follows the texts of options, as the engine reads it; None: it may be nothing."""
        if self._spelling not in follows.made:
            form = Compiler(Shape(follows.node, follows.rules), self.options).form()
            spelling = forms.written({**self.options, "without": [], **follows.spelling})
            try:
                made = _core.Rest(forms.written(form), spelling)
            except InvalidGrammar:
                made = None
            follows.made[self._spelling] = made
        return follows.made[self._spelling]

    def read_each(
        self, listed: _core.ListedTools, number: int, options: Sequence[tuple[int, CachedOption]]
    ) -> None:
        """The same where each goes on in its own way: what they have in common is written and read once."""
        rules = {name: node for _, option in options for name, node in option.follows.rules.items()}
        table = Compiler(Shape(Seq(()), rules), self.options)
        starts = [(at, option.head, table.rule(option.follows.node)) for at, option in options]
        try:
            read = listed.read_each(number, forms.written(table.rules.finished("")), starts)
        except InvalidGrammar:
            return
        for (_, option), specials in zip(options, read, strict=True):
            if specials is not None:
                option.follows.specials = frozenset(specials)
                option.follows.forget()
