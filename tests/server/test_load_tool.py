"""The load tool against the server itself."""

from __future__ import annotations

from typing import Any

import pytest

from tokenform_bench import serve


def test_every_document_of_the_server_is_valid(url: str) -> None:
    model = serve.first_model(url)
    load = serve.Load(url, model, rate=50, requests=8, modes=("schema", "free"), max_tokens=64)
    constrained, free = serve.figures(serve.run(load))
    assert (constrained.failed, constrained.valid, free.failed) == (0, 4, 0)
    assert constrained.tokens > 0 < free.tokens and constrained.first[0] > 0


def test_documents_are_judged_when_nobody_waits_any_more(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge between two chunks would lengthen the gaps of the texts that are bound, and of no others."""
    ended: list[serve.Answer] = []
    judge = serve.is_valid

    def judged(text: str, schema: Any) -> bool:
        assert len(ended) == 6
        return judge(text, schema)

    monkeypatch.setattr(serve, "is_valid", judged)
    load = serve.Load(url, serve.first_model(url), rate=50, requests=6, modes=("schema", "free"))
    answers = serve.run(load, ended.append)
    assert [answer.valid for answer in answers] == [True, None] * 3
