"""Records the demo: one run of the built-in model, drawn as an SVG that plays in a browser.

    OMP_NUM_THREADS=1 python docs/record.py          # writes docs/_static/demo.svg

Nothing is made up: the pieces of text are those that `Generator.stream` gave, at the moments at which it gave
them. Moments are counted in the processor time of the process, so that other work on the machine does not
matter; the picture plays them eight times slower, and says so. Text that one forward pass brought appears at
once. Without animation the picture shows the end.
"""

from __future__ import annotations

import time
from html import escape
from pathlib import Path
from textwrap import wrap

import jsonschema

import tokenform as tf
from tokenform.integrations.demonstration import PROMPT, SCHEMA

TARGET = Path(__file__).parent / "_static" / "demo.svg"
COLUMNS, LINE, WIDTH, LEFT, TOP = 84, 19.0, 8.4, 20.0, 54.0
COLOURS = {"prompt": "#8b949e", "key": "#79c0ff", "text": "#e6edf3", "good": "#7ee787", "dim": "#8b949e"}
SLOWER = 8
SHOWN = [
    'order_id   {"type": "string", "pattern": "^[A-Z]-[0-9]{2,6}$"}',
    'date       {"type": "string", "format": "date"}',
    'items      {"type": "array", "items": {...}, "minItems": 1, "maxItems": 5}',
    'total      {"type": "number", "minimum": 0, "maximum": 10000}',
    'status     {"enum": ["new", "paid", "shipped", "delivered", "cancelled"]}',
]
"""Five of the schema's eight properties, shortened for the picture."""


def run() -> tuple[list[tuple[float, str]], tf.Result]:
    """(second, piece) for each piece of the demo's document, and its result."""
    generator, grammar = tf.Generator(), tf.json_schema(SCHEMA)
    generator.sample("A lamp.", grammar, max_tokens=200)  # the model is warm, as in any later call
    begun = time.process_time()
    stream, pieces = generator.stream(PROMPT, grammar, max_tokens=200), []
    while True:
        try:
            piece = next(stream)
        except StopIteration as end:
            return pieces, end.value
        pieces.append((time.process_time() - begun, piece))


class Screen:
    """Lines of text with the second at which each part appears."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.row = self.column = 0

    def write(self, text: str, colour: str, at: float) -> None:
        """Put text where the cursor is, broken at the width of the screen."""
        while text:
            room = COLUMNS - self.column
            piece, text = text[:room], text[room:]
            x, y = LEFT + self.column * WIDTH, TOP + self.row * LINE
            length = len(piece) * WIDTH
            self.parts.append(
                f'<text x="{x:.1f}" y="{y:.1f}" textLength="{length:.1f}" fill="{COLOURS[colour]}" '
                f'style="animation-delay:{at:.2f}s">{escape(piece)}</text>'
            )
            self.column += len(piece)
            if text:
                self.newline()

    def newline(self) -> None:
        self.row, self.column = self.row + 1, 0

    def svg(self) -> str:
        width, height = 2 * LEFT + COLUMNS * WIDTH, TOP + self.row * LINE + 12
        dots = "".join(
            f'<circle cx="{22 + 20 * i}" cy="20" r="6" fill="{colour}"/>'
            for i, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
            'aria-label="A model writes a document for a JSON Schema; it is valid.">\n'
            "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
            "white-space:pre;animation:show .01s steps(1) backwards}"
            "@keyframes show{from{visibility:hidden}to{visibility:visible}}"
            "@media(prefers-reduced-motion:reduce){text{animation:none}}</style>\n"
            f'<rect width="100%" height="100%" rx="10" fill="#0d1117"/>{dots}\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def draw(pieces: list[tuple[float, str]], result: tf.Result) -> str:
    """The picture of a run."""
    screen, start = Screen(), 1.2
    screen.write("$ ", "dim", 0)
    screen.write("tokenform demo", "text", 0.3)
    screen.newline()
    for line in wrap(PROMPT, COLUMNS - 10):
        screen.newline()
        screen.write(f"{'prompt' if screen.row == 2 else '':<10}", "dim", 0.8)
        screen.write(line, "prompt", 0.8)
    screen.newline()
    for place, line in enumerate(SHOWN):
        screen.newline()
        screen.write("schema    " if place == 0 else " " * 10, "dim", start)
        screen.write(line[:10], "key", start)
        screen.write(line[10 : COLUMNS - 10], "text", start)
    screen.newline()
    screen.newline()
    for second, piece in pieces:
        screen.write(piece, "good", start + 0.8 + SLOWER * second)
    end = start + 1.2 + SLOWER * pieces[-1][0]
    validator = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker())
    screen.newline()
    screen.newline()
    verdict = "valid" if validator.is_valid(result.value) else "invalid"
    screen.write("judged    ", "dim", end)
    screen.write(f"{verdict} (by the package jsonschema)", "text", end)
    screen.newline()
    screen.write("cost      ", "dim", end)
    passes = f"{result.stats.tokens} tokens in {result.stats.forwards} forward passes"
    screen.write(f"{passes}, {pieces[-1][0]:.2f} s on one core (played {SLOWER} times slower)", "text", end)
    return screen.svg()


if __name__ == "__main__":
    TARGET.write_text(draw(*run()), encoding="utf-8")
    print(TARGET)
