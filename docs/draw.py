"""Draws the pictures of docs/how-it-works.md: `python docs/draw.py` writes them into docs/_static."""

from __future__ import annotations

from pathlib import Path

import tokenform as tf
from tokenform.engine.drawing import automaton_svg, masks_svg

FOLDER = Path(__file__).parent / "_static"
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}},
    "required": ["ok", "code"],
    "additionalProperties": False,
}
PIECES = ("", '{"', "ok", '": ', "true", ', "', "code", '": "', "K", "X-", "48", '"}')


def main() -> None:
    grammar = tf.json_schema(SCHEMA, strings="canonical")
    letters = tf.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos=[256], special=[256])
    (FOLDER / "automaton.svg").write_text(automaton_svg(grammar.compile(letters)), encoding="utf-8")
    automaton = grammar.compile(tf.Generator().vocabulary)
    state, text, walked = automaton.start, "", []
    for piece in PIECES:
        state, text = automaton.step_bytes(state, piece.encode()), text + piece
        walked.append((text, state))
    (FOLDER / "masks.svg").write_text(masks_svg(automaton, walked), encoding="utf-8")


if __name__ == "__main__":
    main()
