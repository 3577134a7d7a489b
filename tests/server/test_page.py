"""The page in Chromium, behind the server and in WebAssembly: every example, no errors, markup stays text."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import itertools
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason='pip install "tokenform[serve]"')
sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")

from starlette.applications import Starlette  # noqa: E402

from tokenform.builtin.loading import WEIGHTS, read_tokenizer  # noqa: E402
from tokenform.engine import Vocabulary  # noqa: E402
from tokenform.server import Engine  # noqa: E402
from tokenform.server.playground import routes  # noqa: E402
from tokenform.server.playground.inspecting import inspect  # noqa: E402
from tokenform.server.playground.queries import Query  # noqa: E402

from .conftest import running  # noqa: E402

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PAGE = Path(routes.__code__.co_filename).parent / "page"
EXAMPLES: list[dict[str, Any]] = json.loads((PAGE / "examples.json").read_text(encoding="utf-8"))
VOCABULARY = Vocabulary.from_tokenizer(read_tokenizer(WEIGHTS / "model"))
WAIT = 120_000
"""Milliseconds."""
MARKUP = '<img src=x onerror="document.title=1"><script>document.title=2</script>'


def built_site(out: Path) -> Path:
    """The page as the documentation has it, or a skip."""
    found = importlib.util.spec_from_file_location("docs_playground", ROOT / "docs" / "playground.py")
    assert found is not None and found.loader is not None
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    module = script.module()
    if module is None:
        pytest.skip("tokenform.wasm is not built: `make wasm`")
    script.write(out, module)
    return out


class Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {".js": "text/javascript"}

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module", params=["server", "wasm"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "server":
        engine: Engine = request.getfixturevalue("engine")
        with running(Starlette(routes=routes(engine.generator))) as base:
            yield f"{base}/playground/"
        return
    site = built_site(tmp_path_factory.mktemp("site") / "playground")
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium here")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The page, ready; afterwards: nothing was written to the console as an error."""
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    opened, wrong = context.new_page(), []
    refusals = "the server responded with a status of 400"  # a constraint that is wrong is answered so
    opened.on(
        "console", lambda m: wrong.append(m.text) if m.type == "error" and refusals not in m.text else None
    )
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.goto(address)
    ready(opened)
    yield opened
    context.close()
    assert wrong == []


def ready(page: Any) -> None:
    page.locator("body[data-state=ready]").wait_for(timeout=WAIT)


def choose(page: Any, example: str) -> None:
    page.select_option("#example", label=example)
    ready(page)


def write(page: Any, kind: str, source: str, text: str) -> None:
    page.check(f"#kind-{kind}")
    page.fill("#source", source)
    page.fill("#document", text)
    page.wait_for_timeout(50)
    ready(page)


EXPECTED = {
    "A person": ("So far so good", ""),
    "An order with a mistake": ("Refused", '"'),
    "if, then, else": ("Refused", "i"),
    "A schema that nothing meets": ("not one yet", ""),
    "A regular expression": ("So far so good", ""),
    "Choices": ("So far so good", ""),
    "Arithmetic in GBNF": ("So far so good", ""),
    "A query in Lark": ("So far so good", ""),
    "A tool call": ("Refused", "k"),
    "A small language": ("Accepted", ""),
}


def test_a_refusal_shows_the_part_that_refuses(page: Any) -> None:
    choose(page, "An order with a mistake")
    said = 'Expected: any character but " or a value that no item before it has (uniqueItems).'
    assert said in page.inner_text("#verdict")
    part = json.loads(page.locator("#verdict code.part").inner_text())
    assert part["uniqueItems"] and part["maxItems"] == 5


def test_every_example(page: Any, tmp_path: Path) -> None:
    names = page.locator("#example option").all_inner_texts()[:-1]
    assert names == [*EXPECTED]
    for name, (verdict, red) in EXPECTED.items():
        choose(page, name)
        assert verdict in page.inner_text("#verdict"), name
        assert "".join(page.locator("#coloured .bad").all_inner_texts()) == red, name
        nothing = name == "A schema that nothing meets"
        if not nothing:
            (example,) = (one for one in EXAMPLES if one["name"] == name)
            constraint = {name: example[name] for name in ("kind", "source", "options")}
            native = inspect(Query(constraint=constraint, text=example["text"]), VOCABULARY)
            assert f"{native['allowed']:,} of {VOCABULARY.size:,}" in page.inner_text("#facts"), name
        assert (
            page.locator("#drawing circle").count() == 0
            if nothing
            else page.locator("#next .token").count() > 0
        )
        assert page.locator("#problem").is_visible() is nothing
        page.screenshot(path=tmp_path / "page.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200


def test_the_keyword_is_named(page: Any) -> None:
    choose(page, "An order with a mistake")
    assert "uniqueItems at /properties/items" in page.inner_text("#reason")
    page.click("#reason button")
    chosen = "(e => e.value.slice(e.selectionStart, e.selectionEnd))(document.getElementById('source'))"
    assert page.evaluate(chosen) == "true"


def test_an_error_is_shown_at_its_place(page: Any) -> None:
    choose(page, "A schema that nothing meets")
    page.click("#problem button")
    chosen = "(e => e.value.slice(e.selectionStart, e.selectionEnd))(document.getElementById('source'))"
    assert json.loads(page.evaluate(chosen)) == {"type": "integer", "minimum": 18, "maximum": 12}
    assert page.locator("#lines .wrong").count() == 1
    tops = page.locator("#lines span").evaluate_all("all => all.map(e => e.getBoundingClientRect().top)")
    assert len({round(after - before) for before, after in itertools.pairwise(tops)}) == 1  # a line each


def test_markup_stays_text(page: Any) -> None:
    schema = json.dumps({"enum": [MARKUP], "description": MARKUP, MARKUP: 1})
    write(page, "schema", schema, json.dumps(MARKUP)[:20] + MARKUP)
    write(page, "choices", MARKUP, MARKUP)
    assert page.locator("#coloured .good").inner_text() == MARKUP and "Accepted" in page.inner_text(
        "#verdict"
    )
    write(page, "regex", f"{MARKUP}(", MARKUP)
    page.click("#tab-copy")
    assert MARKUP in page.inner_text("#panel-copy")
    assert page.locator("main img, main script, header img").count() == 0
    assert page.title() == "tokenform playground"


def test_the_link_holds_the_state(page: Any, browser: Any) -> None:
    write(page, "regex", "é[0-9]+→", "é4x")
    again = browser.new_page()
    again.goto(page.url)
    ready(again)
    assert again.input_value("#source") == "é[0-9]+→" and again.input_value("#document") == "é4x"
    assert again.locator("#coloured .bad").inner_text() == "x"
    again.goto(page.url.partition("#")[0] + "#" + "A" * 40)
    again.reload()
    ready(again)
    assert again.input_value("#source") != ""
    again.close()


def test_keys_alone_are_enough(page: Any) -> None:
    page.focus("#tab-check")
    page.keyboard.press("ArrowRight")
    assert page.locator("#tab-write").get_attribute("aria-selected") == "true"
    page.keyboard.press("End")
    assert page.locator("#panel-copy").is_visible() and "tf.json_schema" in page.inner_text("#panel-copy")
    unnamed = """[...document.querySelectorAll('input, select, textarea')].filter(
        e => !e.labels.length && !e.ariaLabel).length"""
    assert page.evaluate(unnamed) == 0


def test_a_phone_needs_no_sideways_scrolling(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for tab in ("check", "write", "fill", "compare", "copy"):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, tab


@pytest.mark.parametrize("width", [320, 390])
def test_every_tab_is_seen_on_a_phone(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    tabs = page.get_by_role("tab")
    assert tabs.count() == 5
    for tab in tabs.all():
        box = tab.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, tab.inner_text()
        assert tab.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_what_may_follow_in_a_string_tells_whether_it_may_end(page: Any) -> None:
    following = page.locator("#facts div", has=page.locator("dt", has_text="Next")).locator("dd")
    schema = '{"type": "string", "minLength": 3}'
    for text, said in {
        '"ab': "any character but the closing quote",
        '"abc': "the closing quote or any character",
        '"ab"': "any character but the closing quote",
    }.items():
        write(page, "schema", schema, text)
        assert following.inner_text() == said, text
    write(page, "regex", "(?s)a.+", "a")  # here a quote is a character as others are
    assert following.inner_text() == "any character"


def test_a_canvas_is_filled_pass_by_pass(page: Any) -> None:
    page.click("#tab-fill")
    if page.locator("#panel-fill .run").count() == 0:
        assert "needs a model" in page.inner_text("#panel-fill")
        return
    page.fill("#panel-fill [name=length]", "96")
    page.click("#panel-fill .run")
    page.locator("#filled .cell.known").first.wait_for(timeout=WAIT)
    assert page.locator("#filled .cell").count() == 96
    assert page.locator("#filled .cell.new").count() > 0 and "known" in page.inner_text("#panel-fill")
    page.locator("#filled .part").wait_for(timeout=WAIT)
    assert page.locator("#filled .cell.known").count() == 96
    text = page.inner_text("#filled .part")
    assert json.loads(text)["name"] and "passes" in page.inner_text("#panel-fill [role=status]")
    cells = page.locator("#filled .cell:not(.end)").all_inner_texts()
    assert "".join(cells).replace("␣", " ") == text


def test_models_write_and_are_compared(page: Any) -> None:
    page.click("#tab-write")
    if page.locator("#panel-write .run").count() == 0:
        assert "needs a model" in page.inner_text("#panel-write")
        return
    page.click("#panel-write .run")
    page.locator("#written .part").wait_for(timeout=WAIT)
    text = page.inner_text("#written .part")
    assert json.loads(text)["name"] and page.inner_text(".tokens-line").replace("\n", "") == text
    assert page.locator(".tokens-line .drafted").count() > 0
    choose(page, "A small language")
    page.click("#tab-compare")
    page.click("#panel-compare .run")
    page.locator("#compared tfoot tr:first-child td:nth-child(8)").wait_for(timeout=WAIT)
    distances = [float(cell) for cell in page.locator("#compared tfoot tr:first-child td").all_inner_texts()]
    assert distances[0] == 0 and distances[3] < distances[1]  # exact; CARS before local masking


if os.environ.get("TOKENFORM_SHOTS"):  # pictures to look at

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("width", [1280, 390])
    def test_pictures(browser: Any, address: str, scheme: str, width: int) -> None:
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
        page = context.new_page()
        page.goto(address)
        ready(page)
        choose(page, "An order with a mistake")
        kind = "server" if "playground" in address else "wasm"
        page.screenshot(path=f"{os.environ['TOKENFORM_SHOTS']}/{kind}-{scheme}-{width}.png", full_page=True)
        context.close()
