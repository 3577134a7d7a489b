"""Lists of tools put into the form of a turn, each tool read by the engine once.

Purpose: what stands around the calls is the same for all lists that are called alike, and its form is kept;
a tool's calls are a branch, which is the tool's own, and a list of them goes beside the form.
Invariant: the texts are those of the tree (`compiled.py`).
Complexity: a form costs its tree once; a list costs a look at each of its tools, and reading those that are
new.
Memory: a branch lives as long as its tool; forms are bounded in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenform import _core
from tokenform.errors import InvalidGrammar
from tokenform.frontends import forms
from tokenform.frontends.forms import Form
from tokenform.frontends.tools.compiled import Compiler, known_options
from tokenform.frontends.tools.grammar import Builder
from tokenform.frontends.tools.kept import LastAsked
from tokenform.frontends.tools.shape import Choice, Follows, Kept, Node, OneOf, Seq, Shape

# Lists of branches, which a form names by their numbers.
Lists = list[list[_core.Branch]]


def branched_form(shape: Shape, json_options: Mapping[str, str] | None = None) -> tuple[Form, Lists]:
    """The form of a tree in which options that are kept stand as branches, and their lists."""
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


_LAID: LastAsked[_Laid] = LastAsked(4 << 20)


def turn_form(
    builder: Builder, json_options: Mapping[str, str], manner: Mapping[str, str] | None = None
) -> tuple[str, Lists]:
    """The form of a turn as JSON text, and its lists of branches.

    manner: further options of its documents, which callers can't choose.
    """
    options = {**known_options(json_options), **(manner or {})}
    key = builder.key and (builder.key, tuple(sorted(options.items())))
    if key and (laid := _LAID.get(key)) is not None:
        kept, linker = {calls: builder.options(calls) for calls in laid.lists}, Linker(options)
        made = {calls: linker.branched(listed) for calls, listed in kept.items()}
        same = all(branches and len(branches) == len(kept[calls]) for calls, branches in made.items())
        if same and _specials(kept.values()) == laid.specials:
            return laid.text, [branches for calls in laid.lists if (branches := made[calls])]
    linker = Linker(options)
    text = forms.written(Compiler(builder.shape(), options, linker).form())
    if key and None not in linker.listed:
        specials = _specials(builder.options(calls) for calls in dict.fromkeys(linker.listed))
        _LAID.put(key, _Laid(text, tuple(linker.listed), specials), len(text))
    return text, linker.lists


def _specials(lists: Iterable[Sequence[Any]]) -> frozenset[str]:
    """The special tokens of options that are kept."""
    found = frozenset[str]()
    for options in lists:
        found = found.union(*(follows.specials for follows in {option.follows for option in options}))
    return found


class Linker:
    """Reads options that are kept, for documents that are written so.

    Attributes:
        lists: of branches.
        listed: what they are of; None: tools that are written into the form.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options, self._told = dict(options), tuple(sorted(options.items()))
        self.lists: Lists = []
        self.listed: list[Any] = []

    def number(self, node: Choice) -> int | None:
        """The number of the list of those options that are kept; None: they are to be written out."""
        branches = self.branched(node.options)
        if branches is None:
            return None
        others = any(type(option) is not Kept for option in node.options)
        self.lists.append(branches)
        self.listed.append(node.of if isinstance(node, OneOf) and not others else None)
        return len(self.lists) - 1

    def written_out(self, node: Choice) -> None:
        """Says that tools are a part of the form, which is theirs then."""
        if isinstance(node, OneOf):
            self.listed.append(None)

    def branched(self, options: Sequence[Node]) -> list[_core.Branch] | None:
        """Those of the options that are kept, read where they are new; None: they can't be branches."""
        told, kept = self._told, [option for option in options if type(option) is Kept]
        if not kept:
            return None
        branches: list[Any] = [option.made.get(told) for option in kept]
        places = [at for at, branch in enumerate(branches) if branch is None]
        fresh = [kept[at] for at in places]
        alike: dict[Follows, list[Kept]] = {}
        for option in fresh:
            if option.follows.slotted:
                alike.setdefault(option.follows, []).append(option)
        for follows, new in alike.items():
            rest = self.rest(follows)
            if rest is None:
                return None
            for option, branch in zip(
                new, _core.branches(rest, [(one.head, one.schema) for one in new]), strict=True
            ):
                option.made[told] = branch
        self.read_each([option for option in fresh if not option.follows.slotted])
        for at in places:
            branches[at] = kept[at].made.get(told)
        return None if None in (branches[at] for at in places) else branches

    def rest(self, follows: Follows) -> _core.Rest | None:
        """What follows the texts of options, as the engine reads it; None: it may be nothing."""
        if self._told not in follows.made:
            form = Compiler(Shape(follows.node, follows.rules), self.options).form()
            spelling = forms.written({**self.options, "without": []})
            try:
                made = _core.Rest(forms.written(form), spelling)
            except InvalidGrammar:
                made = None
            follows.made[self._told] = made
        return follows.made[self._told]

    def read_each(self, options: Sequence[Kept]) -> None:
        """Reads options that go on each in its own way: what they have in common is written and read once."""
        rules = {name: node for option in options for name, node in option.follows.rules.items()}
        table = Compiler(Shape(Seq(()), rules), self.options)
        starts = [(option.head, table.rule(option.follows.node)) for option in options]
        try:
            read = _core.branches_of(forms.written(table.rules.finished("")), starts) if starts else []
        except InvalidGrammar:
            return
        for option, branch in zip(options, read, strict=True):
            if branch is not None:
                option.made[self._told] = branch
                option.follows.specials = frozenset(branch.specials)
                option.follows.forget()
