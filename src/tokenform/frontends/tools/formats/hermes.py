"""Hermes: a JSON object between tags.  Nous Hermes 2/3, Qwen 2.5, Qwen 3, QwQ, ERNIE 4.5 and many others.

Source: the chat templates of NousResearch/Hermes-3 and Qwen/Qwen3.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

FORMAT = Format(
    name="hermes",
    models="Nous Hermes, Qwen 2.5, Qwen 3, QwQ, ERNIE 4.5",
    wire=Wire(
        call=("<tool_call>\n", JsonCall("name", "arguments"), "\n</tool_call>"),
        between="\n",
    ),
    special=("<tool_call>", "</tool_call>"),
    dropped=("<|im_end|>", "<|endoftext|>", "</s>"),
    template=("<tool_call>",),
    template_without=("<function=", "<arg_key>", "<|tool_call|>"),
)
