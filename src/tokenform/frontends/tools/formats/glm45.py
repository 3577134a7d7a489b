"""GLM 4.5 and 4.6: a key and a value element for each argument, each on a line of its own.

Source: the chat template of zai-org/GLM-4.5.
"""

from tokenform.frontends.tools.layout import Format, Name, Tagged, Wire

MARKERS = ("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
ARGUMENTS = Tagged(
    before="<arg_key>", middle="</arg_key>\n<arg_value>", after="</arg_value>\n", markers=MARKERS
)

FORMAT = Format(
    name="glm45",
    models="GLM 4.5, GLM 4.5 Air, GLM 4.6",
    wire=Wire(call=("<tool_call>", Name(), "\n", ARGUMENTS, "</tool_call>"), between="\n"),
    special=MARKERS,
    dropped=("<|user|>", "<|observation|>", "<|endoftext|>"),
    template=("<arg_key>", "</arg_key>\\n<arg_value>"),
)
