"""EXAONE 4 and K-EXAONE: the object of `hermes` on one line with its tags.

Source: the chat templates of LGAI-EXAONE/EXAONE-4.0-32B and K-EXAONE-236B-A23B.
"""

from tokenform.frontends.tools.layout import Format, JsonCall, Wire

FORMAT = Format(
    name="exaone",
    models="EXAONE 4.0, K-EXAONE",
    wire=Wire(call=("<tool_call>", JsonCall("name", "arguments"), "</tool_call>"), between="\n"),
    special=("<tool_call>", "</tool_call>"),
    prompt_opens=True,
    dropped=("[|endofturn|]", "<|endofturn|>"),
    template=("<tool_call>", "<tool_result>"),
)
