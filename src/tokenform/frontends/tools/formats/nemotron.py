"""Nemotron Nano 2 and Llama-Nemotron: a marker, then a JSON list of calls.

Source: the chat templates of nvidia/NVIDIA-Nemotron-Nano-9B-v2 and nvidia/Llama-3_3-Nemotron-Super-49B-v1_5.
Their reader takes a call without the brackets, and so does this one.  (Nemotron 3 writes `qwen3_coder`.)
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

_CALL = (JsonCall("name", "arguments"),)

FORMAT = Format(
    name="nemotron",
    models="Nemotron Nano 2, Llama-Nemotron Super and Ultra 1.5",
    wire=Wire(call=_CALL, section=("<TOOLCALL>[", "]</TOOLCALL>"), between=", "),
    also=(Wire(call=_CALL, section=("<TOOLCALL>", "</TOOLCALL>"), between=", "),),
    special=("<TOOLCALL>", "</TOOLCALL>"),
    trigger_ends_reasoning=True,
    prompt_opens=True,
    dropped=("<SPECIAL_12>", "<|eot_id|>", "<|im_end|>"),
    template=("<TOOLCALL>",),
)
