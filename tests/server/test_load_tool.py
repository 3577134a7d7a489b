"""The load tool against the server itself."""

from __future__ import annotations

from tokenform.bench import serve


def test_every_document_of_the_server_is_valid(url: str) -> None:
    model = serve.first_model(url)
    load = serve.Load(url, model, rate=50, requests=8, modes=("schema", "free"), max_tokens=64)
    constrained, free = serve.figures(serve.run(load))
    assert (constrained.failed, constrained.valid, free.failed) == (0, 4, 0)
    assert constrained.tokens > 0 < free.tokens and constrained.first[0] > 0
