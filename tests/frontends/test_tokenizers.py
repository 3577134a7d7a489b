"""Vocabularies from tokenizers of every family: the bytes of `encode(text)` joined are the text."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

import tokenform as tf
from tokenform.engine import tokenizers
from tokenform.errors import VocabularyError

pytest.importorskip("transformers", reason="the base package comes without tokenizers to read")
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

SAMPLE = 'Hello,  wörld!\n\t{"a": [1, 2.5e-3, null]}\r\n 日本語 \U0001f469\u200d\U0001f680 é e\u0301  x'
CORPUS = [SAMPLE, "the quick brown fox jumps over the lazy dog", '{"name": "Ada", "age": 36}'] * 3
texts = st.text(
    st.one_of(st.characters(codec="utf-8", exclude_characters="\0▁"), st.sampled_from(' \n\t"{}[]:,aeiou01')),
    max_size=40,
)


def byte_level(**options) -> Tokenizer:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=350,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(CORPUS, trainer)
    raw.add_tokens([AddedToken("<tool>", special=False), AddedToken("  ", special=False)])
    return raw


def llama_like() -> Tokenizer:
    """Byte fallback, a mark for spaces, and a decoder that is a sequence: as Llama 2's `tokenizer.json`."""
    raw = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    raw.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    raw.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    specials = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=specials, show_progress=False)
    raw.train_from_iterator(["▁the▁quick▁brown▁fox", "▁{▁}"], trainer)
    # Training marks its special tokens as added; the byte pieces are ordinary ones.
    form = json.loads(raw.to_str())
    form["added_tokens"] = form["added_tokens"][:3]
    return Tokenizer.from_str(json.dumps(form))


def metaspace() -> Tokenizer:
    raw = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    raw.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="never")])
    form = json.loads(llama_like().to_str())
    built = json.loads(raw.to_str())
    built["model"] = form["model"]
    built["added_tokens"] = form["added_tokens"]
    return Tokenizer.from_str(json.dumps(built))


def sentencepiece_model():
    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the quick brown fox", "jumps over the lazy dog", "Ada 36"] * 20),
        model_writer=written,
        vocab_size=300,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())


def tiktoken_encoding():
    import tiktoken

    ranks = {bytes([byte]): byte for byte in range(256)}
    for number, merged in enumerate((b"he", b"ll", b"hell", b"hello", b'":', b"  "), start=256):
        ranks[merged] = number
    specials = {"<|endoftext|>": 270, "<|other|>": 275}  # ids between are gaps
    return tiktoken.Encoding("small", pat_str=r"\s+|\S+", mergeable_ranks=ranks, special_tokens=specials)


FAMILIES = {
    "byte level": byte_level,
    "byte level, wrapped": lambda: PreTrainedTokenizerFast(tokenizer_object=byte_level(), eos_token="</s>"),
    "llama-like": llama_like,
    "metaspace": metaspace,
    "sentencepiece": sentencepiece_model,
    "tiktoken": tiktoken_encoding,
    "tekken": lambda: MistralTokenizer.v3(is_tekken=True),
    "mistral sentencepiece 1": MistralTokenizer.v1,
    "mistral sentencepiece 3": MistralTokenizer.v3,
}
SIZES = {
    "tekken": 131072,
    "mistral sentencepiece 1": 32000,
    "mistral sentencepiece 3": 32768,
    "tiktoken": 276,
}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    tokenizer = FAMILIES[request.param]()
    needs_end = request.param in ("byte level", "llama-like", "metaspace")
    table = tokenizers.read(tokenizer)
    ends = [table.tokens.index(b"</s>")] if needs_end else None
    vocabulary = tf.Vocabulary.from_tokenizer(tokenizer, eos=ends)
    return request.param, tokenizer, vocabulary, list(vocabulary.tokens)


def joined(tokenizer, tokens: list[bytes], text: str) -> bytes:
    return b"".join(tokens[token] for token in tokenizers.encode(tokenizer, text, specials=False))


def test_bytes_of_a_sample(family):
    name, tokenizer, vocabulary, tokens = family
    assert joined(tokenizer, tokens, SAMPLE) in (SAMPLE.encode(), b" " + SAMPLE.encode())
    assert vocabulary.size == len(tokens) == SIZES.get(name, len(tokens))


def test_bytes_of_any_text(family):
    _, tokenizer, vocabulary, tokens = family
    special = set(vocabulary.special)

    @settings(max_examples=60, deadline=None)
    @given(texts)
    def check(text):
        encoded = tokenizers.encode(tokenizer, text, specials=False)
        if special & set(encoded):
            return  # the text spells a special token
        got = b"".join(tokens[token] for token in encoded)
        assert got in (text.encode(), b" " + text.encode())

    check()


def test_special_tokens_and_ends(family):
    name, _, vocabulary, tokens = family
    assert len(vocabulary.eos) == 1 and set(vocabulary.eos) <= set(vocabulary.special)
    if "byte level" in name:
        assert tokens.index(b"<tool>") not in vocabulary.special  # added, but text
    if name == "tiktoken":
        assert tokens[265] == b"" and vocabulary.eos == [270] and vocabulary.special == [270, 275]
    if "mistral" in name or name == "tekken":
        assert vocabulary.eos == [2]


def test_every_byte_can_be_written(family):
    _, _, vocabulary, tokens = family
    special = set(vocabulary.special)
    single = {token for number, token in enumerate(tokens) if len(token) == 1 and number not in special}
    assert single >= {bytes([byte]) for byte in range(0x80, 0xC0)}


def test_vocabulary_as_wide_as_the_models_logits():
    raw = byte_level()
    wide = tf.Vocabulary.from_tokenizer(raw, size=400, eos=[1, 3])
    assert wide.size == 400 and wide.tokens[399] == b"" and list(wide.eos) == [1, 3]
    narrow = tf.Vocabulary.from_tokenizer(raw, size=100, eos=[1])
    assert narrow.size == 100
    with pytest.raises(VocabularyError, match="100 ids"):
        tf.Vocabulary.from_tokenizer(raw, size=100, eos=[200])


def test_what_cannot_be_read_is_refused():
    with pytest.raises(VocabularyError, match="end-of-text"):
        tf.Vocabulary.from_tokenizer(byte_level())
    words = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2}, unk_token="[UNK]"))
    words.decoder = decoders.WordPiece()
    with pytest.raises(VocabularyError, match="WordPiece"):
        tf.Vocabulary.from_tokenizer(words, eos=[0])
    for wrong in (7, None):
        with pytest.raises(VocabularyError, match="is not a tokenizer"):
            tf.Vocabulary.from_tokenizer(wrong)
    with pytest.raises(VocabularyError, match=r"AutoTokenizer\.from_pretrained"):
        tf.Vocabulary.from_tokenizer("gpt2")


def test_slow_byte_level_tokenizers():
    class Slow:
        """What the Python tokenizers of transformers 4 offer."""

        def __init__(self):
            self.byte_decoder = {"H": 72, "i": 105, "Ġ": 32}
            self.all_special_ids = [3]
            self.eos_token_id = 3
            self.added_tokens_decoder = {
                3: AddedToken("</s>", special=True),
                4: AddedToken("<é>", special=False),
            }

        def convert_ids_to_tokens(self, ids):
            return ids

        def get_vocab(self):
            return {"Hi": 0, "Ġ": 1, "Ã": 2, "</s>": 3, "<é>": 4}

    vocabulary = tf.Vocabulary.from_tokenizer(Slow())
    assert list(vocabulary.tokens) == [b"Hi", b" ", b"\xc3", b"</s>", "<é>".encode()]
    assert list(vocabulary.special) == [3]
