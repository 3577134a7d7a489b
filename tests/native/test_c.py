"""The C interface: its header, a C and a C++ program against the built library, masks equal to Python's."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .cases import ROOT, built, cases, packed, packed_vocabulary

CAPI = ROOT / "rust" / "capi"
HEADER = CAPI / "include" / "tokenform.h"
WARNINGS = ["-O1", "-g", "-Wall", "-Wextra", "-Werror"]


def compiled(source: str, compiler: str, standard: str, folder: Path) -> Path:
    """A program of `examples/`, linked with the library that was built."""
    library = built("libtokenform.so").parent
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    program = folder / source.partition(".")[0]
    places = [f"-I{HEADER.parent}", f"-L{library}", "-ltokenform", f"-Wl,-rpath,{library}"]
    command = [
        compiler,
        f"-std={standard}",
        *WARNINGS,
        str(CAPI / "examples" / source),
        "-o",
        str(program),
        *places,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def test_the_header_names_what_the_library_exports() -> None:
    text = HEADER.read_text()
    declared = set(re.findall(r"(?m)^\w.*\b(tokenform_\w+)\(", text))
    sources = "".join(path.read_text() for path in (CAPI / "src").glob("*.rs"))
    assert declared == set(re.findall(r'extern "C" fn (tokenform_\w+)', sources)) and len(declared) > 30


def test_the_header_is_up_to_date() -> None:
    if shutil.which("cbindgen") is None:
        pytest.skip("no cbindgen here: `cargo install cbindgen`")
    command = ["cbindgen", "--config", "cbindgen.toml", "--crate", "tokenform-capi", "."]
    made = subprocess.run(command, cwd=CAPI, capture_output=True, text=True, check=True)
    assert made.stdout == HEADER.read_text()


EXPECTED = """\
{"id":
0 3
1111
11 1
TokenRejected: token 32 (" ") is not allowed here; expected
InvalidSchema: """


def test_the_cpp_program(tmp_path: Path) -> None:
    program = compiled("draft.cpp", "g++", "c++17", tmp_path)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line, want in zip(done.stdout.splitlines(), EXPECTED.splitlines(), strict=True):
        assert line.startswith(want)


def test_the_cpp_program_leaks_nothing(tmp_path: Path) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind here")
    program = compiled("draft.cpp", "g++", "c++17", tmp_path)
    command = [
        "valgrind",
        "-q",
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
        # optimised Rust compares tag and fields of an enum at once, also fields that a variant lacks
        "--undef-value-errors=no",
    ]
    done = subprocess.run([*command, program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_masks_are_those_of_python(tmp_path: Path, maskbench: Path) -> None:
    program = compiled("masks.c", "gcc", "c99", tmp_path)
    listed = list(cases(maskbench))
    (tmp_path / "vocabulary").write_bytes(packed_vocabulary())
    (tmp_path / "cases").write_bytes(b"".join(packed(*case[:3]) for case in listed))
    command = [program, tmp_path / "vocabulary", tmp_path / "cases"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sums = done.stdout.split()
    assert len(sums) == len(listed) >= 550
    assert [at for at, (case, got) in enumerate(zip(listed, sums, strict=True)) if case[3] != got] == []
    assert sum(len(got) == 16 for got in sums) > 530
