"""The stub file and the table of errors say what the compiled engine has."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from tokenform import _core, errors

STUB = ast.parse((Path(errors.__file__).parent / "_core.pyi").read_text())


def test_every_public_name_of_the_binary_is_in_the_stub_and_the_other_way_round() -> None:
    declared = {n.name for n in STUB.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    declared |= {
        n.target.id for n in STUB.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    present = {n for n in dir(_core) if not n.startswith("_")}
    assert declared == present


def test_every_member_of_a_class_is_in_the_stub_and_the_other_way_round() -> None:
    for node in STUB.body:
        if not isinstance(node, ast.ClassDef):
            continue
        cls = getattr(_core, node.name)
        declared = {
            f.name for f in node.body if isinstance(f, ast.FunctionDef) and not f.name.startswith("__")
        }
        present = {n for n in vars(cls) if not n.startswith("_")}
        assert declared == present, node.name


def test_every_kind_of_error_of_the_engine_is_an_exception() -> None:
    for kind in _core.ERROR_KINDS:
        cls = getattr(errors, kind)
        assert inspect.isclass(cls) and issubclass(cls, errors.TokenformError)
