"""OLMo 3: one Python call a line between two markers, with the words of JSON for true, false and null.

Source: the chat template of allenai/Olmo-3-7B-Instruct.
"""

from tokenform.frontends.tools.layout import Format, Name, PythonArguments, Wire

FORMAT = Format(
    name="olmo3",
    models="OLMo 3",
    wire=Wire(
        call=(Name(), "(", PythonArguments(json_words=True), ")"),
        section=("<function_calls>\n", "\n</function_calls>"),
        between="\n",
    ),
    special=("<function_calls>", "</function_calls>"),
    prompt_opens=True,
    dropped=("<|im_end|>", "<|endoftext|>"),
    template=("<function_calls>",),
)
