"""FunctionGemma: Gemma's arguments in braces with `<escape>` around strings.

Source: the parser of vLLM 0.33 (`tool_parsers/functiongemma_tool_parser.py`), which reads marked values
alone, so numbers may be marked, too; the chat template of google/functiongemma-270m-it was not read.
"""

from tokenform.frontends.tools.layout import Format, MarkedArguments, Name, Wire

_CALL = ("<start_function_call>", "<end_function_call>")

FORMAT = Format(
    name="functiongemma",
    models="FunctionGemma",
    wire=Wire(
        call=(
            "<start_function_call>call:",
            Name(),
            MarkedArguments(
                "<escape>",
                "<escape>",
                marked_json=True,
                markers=_CALL,
            ),
            "<end_function_call>",
        ),
    ),
    special=(*_CALL, "<escape>"),
    dropped=("<start_function_response>", "<end_of_turn>", "<eos>"),
    template=("<start_function_call>",),
)
