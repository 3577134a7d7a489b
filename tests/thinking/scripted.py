"""Small models that think: their templates are of the kinds that there are, and what they say is written.

A `Scripted` model gives the most mass to the next token of the first of its turns that the text so far
begins; where none does (a mask has refused it) to a token that the text so far chooses at random.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

_HERMES = (
    "{%- if tools %}<|im_start|>system\nTools:{% for t in tools %}\n{{ t | tojson }}{% endfor %}<|im_end|>\n"
    "{% endif -%}"
)
_TURNS = (
    "{%- for m in messages %}<|im_start|>{{ m.role }}\n"
    "{%- if m.role == 'assistant' and m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n"
    "{% endif %}{{ m.content or '' }}"
    "{%- for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}<|im_end|>\n{% endfor -%}"
)
_BEGIN = "{%- if add_generation_prompt %}<|im_start|>assistant\n"
_EMPTY = "<think>\n\n</think>\n\n"
TEMPLATES = {
    # of the kind of Qwen 3: the model opens its thought itself, unless it is told not to
    "own": _HERMES + _TURNS + _BEGIN + "{% if enable_thinking is defined and enable_thinking is false %}"
    f"{_EMPTY}{{% endif %}}{{% endif %}}",
    # of the kind of Qwen 3.5: the prompt opens it
    "open": _HERMES + _TURNS + _BEGIN + "{% if enable_thinking is defined and enable_thinking is false %}"
    f"{_EMPTY}{{% else %}}<think>\n{{% endif %}}{{% endif %}}",
    # of the kind of DeepSeek R1: the prompt always opens it
    "always": _HERMES + _TURNS + _BEGIN + "<think>\n{% endif %}",
    # of the kind of DeepSeek V3.1: closed unless it is asked for
    "asked": "{%- if thinking is not defined %}{% set thinking = false %}{% endif -%}"
    + _HERMES
    + _TURNS
    + _BEGIN
    + f"{{% if thinking %}}<think>\n{{% else %}}{_EMPTY}{{% endif %}}{{% endif %}}",
    # it has no thoughts
    "none": _HERMES + _TURNS.replace("<think>", "(").replace("</think>", ")") + _BEGIN + "{% endif %}",
}
_WORDS = [
    "Hello",
    " there",
    " should",
    "think",
    "true",
    "Oslo",
    "\n\n",
    '{"',
    '": ',
    '"}',
    "I ",
    "city",
    "ing",
]


def tokenizer(
    template: str, *, special: bool = True, marks: tuple[str, ...] = ("<think>", "</think>")
) -> Any:
    """Bytes, some words, and the marks: special tokens, added ones, or no tokens at all.

    Args:
        template: one of `TEMPLATES`, or a template's text.
        special: whether the marks are special tokens; None: they are text.
    """
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    spelled = {letter: number for number, letter in enumerate(letters)}
    merges: list[tuple[str, str]] = []
    for word in _WORDS:
        cut = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(word)
        pieces = "".join(piece for piece, _ in cut)
        for end in range(2, len(pieces) + 1):
            if pieces[:end] not in spelled:
                spelled[pieces[:end]] = len(spelled)
                merges.append((pieces[: end - 1], pieces[end - 1]))
    raw = Tokenizer(models.BPE(vocab=spelled, merges=merges))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens(
        [AddedToken(text, special=True) for text in ("<|im_start|>", "<|im_end|>", "<pad>")]
    )
    if special is not None:
        raw.add_tokens([AddedToken(text, special=special, normalized=False) for text in marks])
    made = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<pad>")
    made.chat_template = TEMPLATES.get(template, template)
    return made


@dataclass
class Scripted(torch.nn.Module):
    """See above.

    Attributes:
        tokenizer: of the model.
        turns: what it would write after `begins`, whole turns with their thoughts.
        begins: what the prompt has before a turn.
        everywhere: it has logits at each place, as drafts need; else at the last alone, in less time.
    """

    tokenizer: Any
    turns: list[str]
    begins: str = "<|im_start|>assistant\n"
    everywhere: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.size = len(self.tokenizer)
        self.config = SimpleNamespace(
            vocab_size=self.size, eos_token_id=self.tokenizer.eos_token_id, is_encoder_decoder=False,
            max_position_embeddings=8192, model_type="scripted", _name_or_path="scripted",
        )  # fmt: skip
        self.eval()

    def __hash__(self) -> int:
        return id(self)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **_: Any) -> Any:
        rows = []
        for number, ids in enumerate(input_ids):
            seen = ids if attention_mask is None else ids[attention_mask[number].bool()]
            first = 0 if self.everywhere else len(seen) - 1
            row = torch.stack([self._logits(seen[: end + 1].tolist()) for end in range(first, len(seen))])
            padding = row.new_zeros(len(ids) - len(row), self.size)
            rows.append(torch.cat([padding, row]))
        return SimpleNamespace(logits=torch.stack(rows), past_key_values=None)

    def _logits(self, ids: list[int]) -> torch.Tensor:
        said = self.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        said = said.rpartition(self.begins)[2]
        noise = torch.Generator().manual_seed(zlib.crc32(said.encode()))
        logits = torch.randn(self.size, generator=noise, dtype=torch.float64)
        turn = next((turn for turn in self.turns if turn.startswith(said)), None)
        if turn is not None:
            rest = self.tokenizer.encode(turn[len(said) :], add_special_tokens=False)
            logits[rest[0] if rest else self.tokenizer.eos_token_id] += 50
        return logits
