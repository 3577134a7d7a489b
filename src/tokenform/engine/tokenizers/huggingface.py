"""Hugging Face fast tokenizers, by the decoder that their `tokenizer.json` names.

Purpose: the decoder says how the text of a piece becomes bytes: `ByteLevel`; or `Replace`,
`Metaspace`, `ByteFallback` (SentencePiece-style).  Added tokens are literal text.
Rejected: WordPiece and suffix-marked BPE, whose pieces have no bytes of their own (a space depends on
the neighbour); they are refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tokenform.engine.tokenizers.pieces import SPACE_MARK, byte_level, marked
from tokenform.engine.tokenizers.table import TokenTable
from tokenform.errors import VocabularyError


def matches(tokenizer: Any) -> bool:
    return hasattr(_backend(tokenizer), "to_str")


def read(tokenizer: Any) -> TokenTable:
    backend = _backend(tokenizer)
    form = json.loads(backend.to_str())
    spell = _speller(form)
    ids = {int(token): piece for piece, token in backend.get_vocab(with_added_tokens=True).items()}
    tokens = [b""] * (max(ids, default=-1) + 1)
    for token, piece in ids.items():
        tokens[token] = spell(piece)
    special: set[int] = {int(token) for token in getattr(tokenizer, "all_special_ids", ())}
    for added in form.get("added_tokens") or ():
        token, content = int(added["id"]), added["content"]
        tokens[token] = (
            content.replace(SPACE_MARK, " ").encode() if spell is not byte_level else content.encode()
        )
        if added.get("special"):
            special.add(token)
    unknown = form["model"].get("unk_token")
    if isinstance(unknown, str) and backend.token_to_id(unknown) is not None:
        special.add(int(backend.token_to_id(unknown)))
    eos = getattr(tokenizer, "eos_token_id", None)
    return TokenTable(tokens, eos=[] if eos is None else [int(eos)], special=sorted(special))


def identity(tokenizer: Any) -> bytes:
    """Everything that `read` depends on."""
    ends = sorted(getattr(tokenizer, "all_special_ids", ())), getattr(tokenizer, "eos_token_id", None)
    return f"{ends}\n{_backend(tokenizer).to_str()}".encode("utf-8", "surrogatepass")


def _backend(tokenizer: Any) -> Any:
    return getattr(tokenizer, "backend_tokenizer", tokenizer)


def _parts(section: dict[str, Any] | None, nested: str) -> Iterator[dict[str, Any]]:
    """The members of a section of `tokenizer.json`, sequences opened."""
    if not section:
        return
    if section["type"] == "Sequence":
        for part in section[nested]:
            yield from _parts(part, nested)
    else:
        yield section


def _speller(form: dict[str, Any]) -> Callable[[str], bytes]:
    """Piece -> bytes, by the decoder; without one, by the pre-tokenizer."""
    parts = list(_parts(form.get("decoder"), "decoders"))
    kinds = {part["type"] for part in parts}
    if not parts:
        pre_tokenizers = {part["type"] for part in _parts(form.get("pre_tokenizer"), "pretokenizers")}
        kinds = pre_tokenizers & {"ByteLevel", "Metaspace"}
    for kind in ("WordPiece", "BPEDecoder", "CTC"):
        if kind in kinds:
            raise VocabularyError(
                f"a {kind} tokenizer can't be read: the bytes of its tokens depend on their neighbours; "
                "use a byte-level or SentencePiece-style one."
            )
    if "ByteLevel" in kinds:
        return byte_level
    marks = [part["replacement"] for part in parts if part["type"] == "Metaspace"]
    marks += [
        part["pattern"].get("String")
        for part in parts
        if part["type"] == "Replace" and part["content"] == " "
    ]
    fallback = "ByteFallback" in kinds or bool(form["model"].get("byte_fallback"))
    if not marks and not fallback and "Metaspace" not in kinds:
        raise VocabularyError(
            "no decoder of the tokenizer gives its tokens bytes (ByteLevel, Metaspace, ByteFallback); "
            "build tokenform.Vocabulary(tokens, eos=[...]) from its bytes instead."
        )
    mark = marks[0] if marks else SPACE_MARK
    return lambda piece: marked(piece, byte_fallback=fallback, mark=mark)


def encode(tokenizer: Any, text: str, specials: bool) -> list[int]:
    encoded = tokenizer.encode(text, add_special_tokens=specials)
    return list(getattr(encoded, "ids", encoded))
