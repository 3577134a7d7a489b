"""Step 3: special tokens around the list and each call, StepTML elements inside.

Source: the chat template of stepfun-ai/step3, as the parsers of vLLM 0.33 and SGLang 0.5.23 read it.
(Step 3.5 and later write `qwen3_coder`.)
"""

from tokenform.frontends.tools.layout import Format, Name, Tagged, Wire

FORMAT = Format(
    name="step3",
    models="Step 3",
    wire=Wire(
        call=(
            "<｜tool_call_begin｜>function<｜tool_sep｜>",
            '<steptml:invoke name="',
            Name(),
            '">\n',
            Tagged(
                before='<steptml:parameter name="',
                middle='">',
                after="</steptml:parameter>\n",
            ),
            "</steptml:invoke><｜tool_call_end｜>\n",
        ),
        section=("<｜tool_calls_begin｜>\n", "<｜tool_calls_end｜>"),
    ),
    special=(
        "<｜tool_calls_begin｜>",
        "<｜tool_call_begin｜>",
        "<｜tool_sep｜>",
        "<｜tool_call_end｜>",
        "<｜tool_calls_end｜>",
    ),
    trigger_ends_reasoning=True,
    prompt_opens=True,
    dropped=("<|EOT|>", "<｜end▁of▁sentence｜>"),
    template=("<steptml:invoke", "<｜tool_calls_begin｜>"),
)
