"""The tokenizer: byte-level BPE trained on the synthetic data, made so that copying is easy.

Purpose: the same word is the same tokens wherever it stands.  A space is no part of the word after it
(but for a few function words, which are never values), capitals start a piece, digits come in pairs: so
`Ada` in prose and `"Ada"` in JSON are one and the same token.
Invariant: all 256 bytes are tokens, so that every text can be written.
Rejected: the usual leading-space pieces (GPT-2); ` Ada` and `Ada` are then different tokens, and copying
needs a table of such pairs that made-up names are not in.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tokenform.builtin.prompt import BOS, EOS, PAD, ROLE_MARKERS, TEMPLATE_PATH, TEXT_MARKERS

_FUNCTION_WORDS = [
    "the",
    "of",
    "and",
    "in",
    "is",
    "was",
    "a",
    "an",
    "to",
    "for",
    "with",
    "on",
    "at",
    "by",
    "from",
    "has",
    "it",
    "are",
    "as",
]
_PIECES = "|".join(
    [
        rf" (?:{'|'.join(_FUNCTION_WORDS)})(?![\p{{L}}\p{{N}}])",
        r"\p{Lu}?\p{Ll}+",
        r"\p{Lu}+(?!\p{Ll})",
        r"\p{L}",
        r"\p{N}{1,2}",
        r"[^\p{L}\p{N}]+",
    ]
)


def train_tokenizer(texts: Iterable[str], size: int, context: int) -> Any:
    """A `PreTrainedTokenizerFast` of `size` tokens with the chat template on it.

    Args:
        texts: texts to count pairs in.
        size: number of tokens, markers included.
        context: `model_max_length`, in tokens.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = [PAD, BOS, EOS, *ROLE_MARKERS]
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(TEXT_MARKERS),
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=16,
        show_progress=False,
    )
    for marker in TEXT_MARKERS + tuple(special):
        assert "\n" not in marker
    stripped = (_without_markers(text, (*special, *TEXT_MARKERS)) for text in texts)
    tokenizer.train_from_iterator(stripped, trainer)
    tokenizer.add_tokens([AddedToken(marker, special=False, normalized=False) for marker in TEXT_MARKERS])
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        model_max_length=context,
        clean_up_tokenization_spaces=False,
    )
    wrapped.chat_template = TEMPLATE_PATH.read_text(encoding="utf-8")
    return wrapped


def _without_markers(text: str, markers: tuple[str, ...]) -> str:
    for marker in markers:
        text = text.replace(marker, "\n")
    return text
