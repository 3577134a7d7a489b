"""Texts that UTF-8 can spell.

Purpose: a Python str may hold half of a surrogate pair; the engine's texts can't, and neither can a model's.
Invariant: a frontend checks what the caller wrote before anything else reads it.
"""

from __future__ import annotations

from tokenform.errors import TokenformError


def check_text(text: str, kind: type[TokenformError]) -> None:
    """Raises `kind` where it is no str; with line and column where it has a lone surrogate."""
    if not isinstance(text, str):
        remedy = "; decode it" if isinstance(text, bytes | bytearray) else ""
        raise kind(f"the text is a str, not {type(text).__name__}{remedy}.")
    if text.isascii():  # which Python has noted of each text
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        column = error.start - text.rfind("\n", 0, error.start)
        code = ord(text[error.start])
        raise kind(
            f"Line {line}, column {column}: U+{code:04X} is half of a surrogate pair, which no UTF-8 text "
            "can spell; write the whole character.",
            line=line,
            column=column,
        ) from None
