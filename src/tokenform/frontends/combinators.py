"""Constraints about a text as a whole: spans of a document, phrases, text up to a trigger, special tokens.

Invariant: each is exact for any tokenisation.
Complexity: `substring` O(n) in the document's chunks; `contains` visits at most 2^k * m states for k phrases
of m characters, and only those that a text reaches; `until` as many states as the triggers have characters.
Source: Blumer et al. 1985 (suffix automata); Aho, Corasick 1975 (`contains` walks the product of the
phrases' automata, built by derivatives).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from tokenform.errors import OptionError
from tokenform.frontends import forms
from tokenform.frontends.coercion import to_grammar
from tokenform.frontends.forms import Form
from tokenform.frontends.grammar import Grammar, as_grammar

_CHUNKS = {"character": None, "word": re.compile(r"\w+|(?s:\W)"), "line": re.compile(r"[^\n]*\n|[^\n]+")}


def from_form(form: Form, source: str) -> Grammar:
    """The grammar of a form; `source` is what people are shown."""
    return Grammar(forms.compiled(form, source), form=form, source=source)


def substring(text: str, *, by: Literal["character", "word", "line"] = "character") -> Grammar:
    """The spans of a document, the empty one included: for quoting and extraction.

    Args:
        text: the document.
        by: a span begins and ends at any character; or it is made of whole words (runs of letters, digits and
            `_`; every other character is a word by itself); or of whole lines.
    Raises:
        OptionError: `by` is not one of these.
    """
    if by not in _CHUNKS:
        raise OptionError(f"by={by!r} is not known; choose one of {', '.join(map(repr, _CHUNKS))}.")
    pattern = _CHUNKS[by]
    # one by one: `findall` is a single step for the interpreter, and no other thread has its turn meanwhile
    chunks = [found.group() for found in pattern.finditer(text)] if pattern else text
    return from_form({"language": {"spans": chunks}}, f"substring({_short(text)})")


def contains(phrases: str | Iterable[str]) -> Grammar:
    """The texts in which each of the phrases occurs, in any order; occurrences may overlap.

    Combine with `&` to ask more of the text: `contains(["cat", "mat"]) & regex(r"[A-Z][^.]*\\.")`.

    Raises:
        OptionError: no phrase, an empty one, or one that is not a str.
    """
    listed = _texts("phrases", phrases)
    parts = [forms.containing(forms.literal(phrase)) for phrase in listed]
    language = parts[0] if len(parts) == 1 else {"and": parts}
    return from_form({"language": language}, f"contains({', '.join(map(_short, listed))})")


def until(trigger: str | Iterable[str], *, then: Grammar | str | None = None) -> Grammar:
    """Free text up to the first place where a trigger ends, the trigger, and then what `then` accepts.

    A trigger that is a special token of the vocabulary may be written as that token, and as text.  The value
    is what `then` makes of what follows the trigger, where it makes more than text of it: of
    `until("</think>", then=tf.json_schema(...))` it is the document.  (`Generator.sample` lets a model think
    before its text by itself.)

    Args:
        trigger: one text or several; none of them occurs earlier.
        then: what follows the trigger; None: nothing.
    Raises:
        OptionError: no trigger, an empty one, or one that is not a str.
    """
    listed = _texts("trigger", trigger)
    ends = forms.literal(listed[0]) if len(listed) == 1 else {"words": listed}
    form: Form = {"language": {"until": [forms.ANY, ends]}, "ends": listed}
    source = f"until({', '.join(map(_short, listed))})"
    if then is None:
        return from_form(form, source)
    then = as_grammar(then)
    whole, source = forms.sequence([form, then.form]), f"{source} + ({then.source})"

    def read(text: str) -> Any:
        ends = [text.index(one) + len(one) for one in listed if one in text]
        return then.parse(text[min(ends) :])

    return Grammar(
        forms.compiled(whole, source),
        form=whole,
        read=read if then.reads else None,
        source=source,
        schema=then.schema,
        tools=then.tools,
    )


def literal(text: str) -> Grammar:
    """The text alone."""
    return from_form({"language": forms.literal(text)}, repr(text))


def special_token(text: str) -> Grammar:
    """One special token, named by its text; a vocabulary without it writes the text out instead.

    A token that also ends texts in the vocabulary (`eos`) is taken at the end alone, for whoever writes
    stops at it: where the grammar goes on after it, `compile` raises VocabularyError.
    """
    if not isinstance(text, str) or not text:
        raise OptionError("a special token is named by its text, which is a str and not empty.")
    return from_form({"special": text, "spelled": "unknown"}, text)


def _texts(name: str, texts: str | Iterable[str]) -> list[str]:
    listed = [texts] if isinstance(texts, str) else list(texts)
    if not listed or not all(isinstance(text, str) and text for text in listed):
        raise OptionError(f"{name} must be a str or several, none of them empty.")
    return list(dict.fromkeys(listed))


def _short(text: str) -> str:
    return repr(text if len(text) <= 30 else text[:27] + "...")


def capture(name: str, grammar: Any) -> Grammar:
    """The grammar itself, whose part of a text is given back by name.

    Captures count in grammars that are put together by `+` and `|`.  For the fields of a JSON document take
    the value itself.

    Args:
        name: of the value; one that occurs several times stands for a list.
        grammar: a grammar, or a text.

    >>> import tokenform as tf
    >>> said = "I am " + tf.combinators.capture("age", tf.json_schema({"type": "integer"}))
    >>> said.captures("I am 36")["age"]
    Capture(text='36', value=36, span=(5, 7))
    """
    if not name or not isinstance(name, str):
        raise OptionError("a capture needs a name.")
    inner = as_grammar(grammar) if isinstance(grammar, str) else to_grammar(grammar)
    return inner.with_parts(("capture", name, inner))
