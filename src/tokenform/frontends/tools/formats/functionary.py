"""Functionary 3.1: each call between tags, the name in the first of them, the arguments JSON.

Source: Meta's prompt format for Llama 3.1 ("user-defined custom tool calling"), which meetkai's Functionary
3.1 is trained on; calls in a row adjoin.  (Functionary 3.2 begins within a marker that its prompt ends with.)
"""

from tokenform.frontends.tools.layout import Format, JsonArguments, Name, Wire

FORMAT = Format(
    name="functionary",
    models="Functionary 3.1, Llama 3.1 (custom tools)",
    wire=Wire(call=("<function=", Name(), ">", JsonArguments(), "</function>")),
    dropped=("<|eot_id|>", "<|eom_id|>"),
    template=("<function=", "<|start_header_id|>"),
    template_without=("<parameter=",),
)
