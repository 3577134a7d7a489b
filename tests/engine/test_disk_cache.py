"""What was read once is kept for other processes: the same, or nothing; bounded; damage costs time alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenform as tf
from tokenform import _core, disk_cache
from tokenform.engine import tokenizers
from tokenform.engine.tokenizers.table import TokenTable
from tokenform.errors import OptionError

TEXT = 'start: "a" start | WORD\nWORD: /[b-d]{2,5}/\n%import common.INT\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    remembered = tf.engine.memory_held()["compiled"][1]
    tf.engine.set_limits(compiled=0)  # so that the disk is asked
    monkeypatch.setattr(disk_cache, "_chosen", (None, None))
    monkeypatch.delenv(disk_cache.VARIABLE, raising=False)
    assert tf.engine.cache_dir() is None
    found = tf.engine.cache_dir(tmp_path / "a" / "b")
    assert found is not None
    yield found
    tf.engine.set_limits(compiled=remembered)


def entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_a_grammar_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tf.lark(TEXT)
    assert len(entries(folder)) == 1
    monkeypatch.setattr("tokenform.frontends.lark.read_lark", None)  # reading it again would fail
    again = tf.lark(TEXT)
    assert (again.form, again.source, again.report) == (first.form, first.source, first.report)
    assert again.to_bytes() == first.to_bytes()
    vocabulary = tf.Vocabulary([bytes([byte]) for byte in range(256)] + [b""], [256], [256])
    for text in (b"abc", b"aabb", b"a", b"", b"bcdbcd"):
        assert again.compile(vocabulary).matches(text) == first.compile(vocabulary).matches(text)
    for other in ({"start": "start"}, {"lexer": "dynamic"}):
        with pytest.raises(TypeError):  # another grammar: it is read, which fails here
            tf.lark(TEXT, **other)  # type: ignore[arg-type]


def test_what_depends_on_more_than_its_text_is_not_kept(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "own.lark").write_text("X: /x/\n")
    tf.lark("start: X\n%import own.X", import_paths=[str(tmp_path)])
    tf.lark("start: X+", definitions={"X": tf.regex("a")})
    with pytest.raises(tf.errors.InvalidGrammar):
        tf.lark("start: (")
    assert entries(folder) == []


def test_damage_costs_time_alone(folder: Path) -> None:
    expected = tf.lark(TEXT).to_bytes()
    (path,) = entries(folder)
    whole = path.read_bytes()
    for cut in (0, 5, 17, 20, 40, len(whole) - 1):
        for damaged in (whole[:cut], whole[:cut] + bytes([whole[cut] ^ 1]) + whole[cut + 1 :]):
            path.write_bytes(damaged)
            assert tf.lark(TEXT).to_bytes() == expected
            assert path.read_bytes() == whole
    path.write_bytes(disk_cache._MARK + disk_cache._sum(b"no grammar") + b"no grammar")
    assert tf.lark(TEXT).to_bytes() == expected and path.read_bytes() == whole
    path.unlink()
    path.mkdir()  # can be neither read nor replaced
    assert tf.lark(TEXT).to_bytes() == expected


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="root writes everywhere")
def test_a_folder_that_can_not_be_written(folder: Path) -> None:
    folder.chmod(0o500)
    assert tf.lark(TEXT).to_bytes()


def test_another_version_is_another_entry(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tf.lark(TEXT)
    monkeypatch.setattr(disk_cache, "_version", lambda: b"another")
    tf.lark(TEXT)
    assert len(entries(folder)) == 2


def test_it_is_bounded_and_keeps_what_is_used(folder: Path) -> None:
    tf.engine.cache_dir(limit=5_000)
    for number in range(20):
        disk_cache.write("x", bytes(1_000), str(number).encode())
        for place, path in enumerate(sorted(folder.iterdir(), key=lambda p: p.stat().st_mtime_ns)):
            os.utime(path, (place, place))  # in this order, whatever the clock's steps
        assert disk_cache.read("x", b"0") == bytes(1_000)  # used now
        assert sum(path.stat().st_size for path in entries(folder)) <= 5_000
    assert disk_cache.read("x", b"19") and not disk_cache.read("x", b"1")
    disk_cache.write("x", bytes(6_000), b"large")
    assert disk_cache.read("x", b"large") is None
    stale = folder / f".x{disk_cache._ENDING}.1.ab"
    stale.write_bytes(b"half")
    os.utime(stale, (1, 1))
    (folder / "not ours").write_bytes(bytes(10_000))
    disk_cache.write("x", b"1", b"again")
    assert not stale.exists() and (folder / "not ours").exists()


def test_many_processes_and_threads_write_at_once(folder: Path) -> None:
    code = (
        "import sys, tokenform as tf\n"
        "for n in range(12):\n"
        "    print(len(tf.lark(f'start: \"a\" start | /b{{{n % 4},9}}c/').to_bytes()))\n"
    )
    environment = {**os.environ, "TOKENFORM_CACHE_DIR": str(folder), "TOKENFORM_CACHE_BYTES": "2500"}
    environment["PYTHONPATH"] = str(Path(tf.__file__).parents[1])
    command = [sys.executable, "-c", code]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) for _ in range(3)]
    body = bytes(range(256)) * 40
    threads = [threading.Thread(target=disk_cache.write, args=("y", body, b"one")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    printed = {process.communicate(timeout=120)[0] for process in running}
    assert len(printed) == 1 and printed.pop().count(b"\n") == 12
    assert [process.returncode for process in running] == [0, 0, 0]
    assert not [path for path in entries(folder) if path.name.startswith(".")]


@settings(deadline=None)
@given(st.lists(st.binary(max_size=6), max_size=20), st.lists(st.integers(0, 9)), st.binary(max_size=30))
def test_tables_travel_as_bytes(tokens: list[bytes], ids: list[int], other: bytes) -> None:
    table = TokenTable(tokens, ids, sorted(ids))
    assert TokenTable.from_bytes(table.to_bytes()) == table
    for damaged in (other, table.to_bytes()[:-1], table.to_bytes() + b"x"):
        with pytest.raises(ValueError):
            TokenTable.from_bytes(damaged)


def test_a_tokenizer_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    bpe = library.Tokenizer(library.models.BPE(vocab={"a": 0, "b": 1, "<e>": 2}, merges=[]))
    bpe.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = library.decoders.ByteLevel()
    bpe.add_special_tokens(["<e>"])
    first = tf.Vocabulary.from_tokenizer(bpe, eos=[2])
    assert len(entries(folder)) == 1
    monkeypatch.setattr(tokenizers.huggingface, "_speller", None)  # reading it again would fail
    again = tf.Vocabulary.from_tokenizer(bpe, eos=[2])
    assert (again.tokens, again.eos, again.special) == (first.tokens, first.eos, first.special)
    bpe.add_tokens(["c"])
    with pytest.raises(TypeError):  # another tokenizer: it is read, which fails here
        tf.Vocabulary.from_tokenizer(bpe, eos=[2])


def test_what_can_not_be_a_folder(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="can't be made"):
        tf.engine.cache_dir(tmp_path / "file" / "folder")
    with pytest.raises(OptionError, match="limit=-1"):
        tf.engine.cache_dir(limit=-1)
    assert _core.__file__ and tf.engine.cache_dir() == folder
