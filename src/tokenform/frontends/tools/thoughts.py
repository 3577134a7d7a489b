"""The grammar of a thought alone: what stands between a model's markers, before an answer of any form.

Invariant: special tokens stand for themselves where the vocabulary has them, as in the grammar of a turn.
"""

from __future__ import annotations

from typing import Any

from tokenform.errors import ToolError
from tokenform.frontends import forms
from tokenform.frontends.grammar import Grammar
from tokenform.frontends.tools.compiled import shape_form
from tokenform.frontends.tools.formats import find_format
from tokenform.frontends.tools.grammar import Builder
from tokenform.frontends.tools.shape import Free, Shape, Text, Trigger, sequence


def thought(format: Any, *, opened: bool = False) -> Grammar:
    """Any text between the markers of a format, and the markers.

    Args:
        format: a format's name, or a tokenizer whose chat template shows it.
        opened: the prompt has the opening marker already.
    Raises:
        ToolError: the format has no such block: it writes its turns in channels or between fences.
    """
    form = find_format(format)
    if form.channels or form.fenced:
        raise ToolError(f"the format {form.name!r} has no block of thought that stands by itself.")
    builder, (opener, closer) = Builder(form, (), True, "declared"), form.reasoning
    free = Free(until=(Trigger(closer, special=closer in form.special),))
    # as templates write earlier turns: an answer begins in a line of its own
    ending = Text("\n\n") if closer == "</think>" else Text("")
    opening = [] if opened else [builder.literal(opener)]
    root = sequence(*opening, free, builder.literal(closer), ending)
    made = shape_form(Shape(root, builder.rules))
    source = f"thought({form.name})"
    return Grammar(forms.compiled(made, source), form=made, source=source)
