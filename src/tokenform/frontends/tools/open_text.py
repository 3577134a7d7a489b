"""Text whose end what follows it says, as regular languages.

Purpose: free text and strings without quotes are joined with the text that ends them into one language ("the
first place where the trigger ends"), so that reading them is one state of a lexical automaton and not a guess
at every character.
Rejected: such text as a part of its own (each `<` of it might be the trigger's, and every token would be
walked through both).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tokenform.frontends import forms
from tokenform.frontends.forms import ANY, Language, literal
from tokenform.frontends.tools.shape import Free, Node, RawString, Special, Text, Trigger

_NO_WORD_BEFORE: Language = {"regex": r"(?s)(?:.*\W)?", "dialect": "python"}


@dataclass(frozen=True)
class Open:
    """Text that has begun and ends where what follows it says."""

    language: Language
    # The texts, none of which occurs in it, whose first place is where it ends.
    triggers: tuple[str, ...] = ()
    # What follows may occur in it: the language tells its end.
    self_delimiting: bool = False

    def before(self, text: str) -> Language:
        """The open text up to the first place where `text` (or the trigger that it begins with) ends."""
        if self.self_delimiting:
            return {"concat": [self.language, literal(text)]}
        end = next((t for t in self.triggers if text.startswith(t)), text)
        first: Language = {"until": [self.language, literal(end)]}
        return first if end == text else {"concat": [first, literal(text[len(end) :])]}


def piece(node: Free, specials: Iterable[str], *, begins: bool, ends: bool = False) -> Language:
    """Texts without triggers and without the texts of special tokens.

    begins, ends: it stands where the free text does; where nothing follows it, or a whole word.
    """
    refused = [_occurring(trigger) for trigger in node.until]
    marks = sorted(set(specials).difference(node.allow, (trigger.text for trigger in node.until)))
    refused += [forms.containing(literal(text)) for text in marks]
    if begins:
        starts = [{"regex": pattern, "dialect": "python"} for pattern in node.not_prefix]
        refused += [{"concat": [start, ANY]} for start in starts]
    parts: list[Language] = [{"not": language} for language in refused]
    if ends:
        parts.append(_NO_WORD_BEFORE)
    return {"and": parts} if parts else ANY


def _occurring(trigger: Trigger) -> Language:
    if trigger.whole_word:
        return {"concat": [_NO_WORD_BEFORE, literal(trigger.text), ANY]}
    return forms.containing(literal(trigger.text))


def raw_language(node: RawString) -> Language:
    """The strings with a line feed beside them; without it those that do not begin (end) with one."""
    language: Language = {"string": forms.written(node.schema)}
    feed = literal("\n")
    for fed, order in zip(node.feeds, (1, -1), strict=True):  # before it, after it
        if fed:
            bare: Language = {"and": [language, {"not": {"concat": [feed, ANY][::order]}}]}
            language = {"or": [{"concat": [feed, language][::order]}, bare]}
    refused: list[Language] = [literal(text) for text in node.without]
    refused += [{"regex": pattern, "dialect": "python"} for pattern in node.never]
    return {"and": [language, *({"not": forms.containing(one)} for one in refused)]}


def split_trigger(parts: tuple[Node, ...], opened: Open) -> tuple[Text | Special, ...]:
    """The texts and special tokens that a trigger of the open text is made of; none if it is one piece."""
    parts_before: list[Text | Special] = []
    for part in parts:
        if not isinstance(part, (Text, Special)):
            break
        parts_before.append(part)
        text = "".join(piece.text for piece in parts_before)
        if any(text.startswith(trigger) for trigger in opened.triggers):
            return tuple(parts_before) if len(parts_before) > 1 else ()
    return ()
