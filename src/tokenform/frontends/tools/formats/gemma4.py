"""Gemma 4: special tokens around each call, arguments in braces with marks around strings.

Source: the chat template of google/gemma-4-31B-it.  Some checkpoints leave out the word `call`, or end the
turn instead of the call (vLLM 0.33, `parser/gemma4.py` and `tool_parsers/gemma4_utils.py`).
"""

from tokenform.frontends.tools.layout import Either, Format, MarkedArguments, Name, Wire

_END = Either(("<tool_call|>", "<turn|>"))
_ARGUMENTS = MarkedArguments('<|"|>', '<|"|>', markers=("<|tool_call>", "<tool_call|>"))

FORMAT = Format(
    name="gemma4",
    models="Gemma 4",
    wire=Wire(call=("<|tool_call>", Either(("call:", ":")), Name(), _ARGUMENTS, _END)),
    special=("<|tool_call>", "<tool_call|>", '<|"|>', "<|channel>", "<channel|>"),
    reasoning=("<|channel>thought\n", "<channel|>"),
    trigger_ends_reasoning=True,
    dropped=("<turn|>", "<|tool_response>", "<eos>"),
    template=("<|tool_call>call:",),
)
