"""Tasks with right answers, and their judges: hand-made rows, and validators that know nothing of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tokenform.errors import DataError, OptionError
from tokenform_bench.evaluate import tasks
from tokenform_bench.evaluate.tasks import extraction, words
from tokenform_bench.evaluate.tasks.grading import Marks, first_object, leaves, mark_document, mark_text, same
from tokenform_bench.judges import Judges

MADE = ("last_letters", "shuffled_objects", "arithmetic", "extraction", "extraction_aside")


@pytest.mark.parametrize("family", MADE)
def test_tasks_can_be_solved_and_are_made_of_a_seed(family: str) -> None:
    made = list(tasks.make_tasks(family, 40, 1))
    assert made == list(tasks.make_tasks(family, 40, 1))
    assert made[:7] == list(tasks.make_tasks(family, 7, 1))
    assert made != list(tasks.make_tasks(family, 40, 2))
    assert len({task.id for task in made}) == 40
    for task in made:
        document = (
            task.answer if isinstance(task.answer, dict) else {"reasoning": "so", "answer": task.answer}
        )
        text = json.dumps(document)
        assert Judges(task.schema).judge(text).valid
        for written in (text, f"Well: {text} is it.", f"```json\n{json.dumps(document, indent=2)}\n```"):
            marks = tasks.judge_of(family)(task.answer, written)
            assert marks.right and marks.fields_right == marks.fields
        assert not tasks.judge_of(family)(task.answer, "I can't say.").right


def test_unknown_families_are_refused() -> None:
    with pytest.raises(OptionError, match="extraction_aside"):
        tasks.make_tasks("riddles", 1, 0)


def test_what_is_kept_aside_shares_nothing_with_what_is_open() -> None:
    opened, aside = list(extraction.make(40, 0)), list(extraction.make(200, 0, aside=True))
    assert len({task.text for task in [*opened, *aside]}) == 240
    both = {task.id.rpartition("-")[2] for task in opened}
    assert both == {task.id.rpartition("-")[2] for task in aside} == set(extraction.KINDS)
    said = [" ".join(task.text for task in made) for made in (opened, aside)]
    for pool in (
        words.NAMES,
        words.PRODUCTS,
        words.VENDORS,
        *words.OPINIONS.values(),
        *words.REPORTS.values(),
    ):
        for text, other in zip(said, (True, False), strict=True):
            assert not [word for word in words.half(pool, other) if word in text]


def test_every_answer_stands_in_its_text() -> None:
    for task in [*extraction.make(40, 3), *extraction.make(200, 3, aside=True)]:
        for path, value in leaves(task.answer):
            if path[-1] in ("date", "due"):
                year, month, day = map(int, value.split("-"))
                assert all(part in task.text for part in (str(year), words.MONTHS[month - 1], str(day)))
            elif isinstance(value, str) and path[-1] not in ("sentiment", "topic"):
                assert value.casefold() in task.text.casefold(), (task.id, path)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                assert f"{value:.2f}" in task.text or f"{value:.0f}" in task.text, (task.id, path)
        assert task.text in task.prompt


@pytest.mark.parametrize(
    ("want", "given", "right"),
    [
        (8, 8.0, True),
        (8, "8", False),
        (1, True, False),
        (True, True, True),
        (False, 0, False),
        (None, None, True),
        (None, False, False),
        ("Oslo", "  oslo. ", True),
        ("Karl Berg", "Karl  Berg", True),
        ("Caf\u00e9", "Cafe\u0301", True),
        ("Karl Berg", "Karl", False),
        ("", "", True),
    ],
)
def test_one_leaf(want: object, given: object, right: bool) -> None:
    assert same(want, given) is right


ORDER = {"customer": "Ada", "items": [{"product": "lamp", "quantity": 2}, {"product": "rug", "quantity": 1}]}


@pytest.mark.parametrize(
    ("given", "right", "fields_right"),
    [
        (ORDER, True, 5),
        ({"items": ORDER["items"], "customer": "ADA"}, True, 5),
        ({**ORDER, "note": "soon"}, False, 5),  # an invented key
        ({**ORDER, "items": ORDER["items"][:1]}, False, 3),
        ({**ORDER, "items": [*ORDER["items"], {"product": "vase", "quantity": 9}]}, False, 5),
        ({**ORDER, "items": ORDER["items"][::-1]}, False, 1),
        ({"customer": "Ada", "items": []}, False, 1),
        ({"customer": {"name": "Ada"}, "items": ORDER["items"]}, False, 4),
        ([], False, 0),
        ("Ada", False, 0),
    ],
)
def test_documents_are_marked_by_field(given: object, right: bool, fields_right: int) -> None:
    assert mark_document(ORDER, given) == Marks(right, fields_right, 5)


@pytest.mark.parametrize(
    ("answer", "text", "right"),
    [
        ("abcd", '{"answer": "ABCD"}', True),
        ("abcd", '{"answer": "abce"}', False),
        ("abcd", "The answer is abcd.", True),
        ("red ball", "so it is the red ball.", True),
        ("red ball", "so it is the blue ball.", False),
        (12, '{"answer": 12.0}', True),
        (12, "that makes 12 apples", True),
        (1200, "She earns $1,200.", True),
        (1, '{"answer": true}', False),
        (12, "", False),
        ({"a": 1}, '{"a": 1, "b": 2}', False),
        ({"a": 1}, "1", False),
        ([1, 2], "it is [1, 2]", True),
        (5, '{"reasoning": "{", "answer": 5', True),
        ({"a": 1}, '{"a": ' + "[" * 5_000, False),  # deeper than Python reads
    ],
)
def test_texts_are_marked(answer: object, text: str, right: bool) -> None:
    assert mark_text(answer, text).right is right


def test_the_first_object_in_a_text() -> None:
    assert first_object('Sure: {"a": {"b": 1}} and {"c": 2}') == ({"a": {"b": 1}}, '{"a": {"b": 1}}')
    assert first_object("none [1]") == (None, "none [1]")


def test_task_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"prompt": "p", "schema": {}, "answer": 3}\n\n{"prompt": 1}\n')
    with pytest.raises(DataError, match=r"mine\.jsonl:3"):
        list(tasks.read_tasks(path))
    path.write_text('{"prompt": "p", "schema": {}, "answer": 3}\n')
    assert list(tasks.read_tasks(path)) == [tasks.Task("mine-1", "mine", "p", {}, 3)]
