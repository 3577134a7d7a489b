"""Llama 3.2 and 3.3 in their other tongue: a Python list of calls.

Source: Meta's prompt format for Llama 3.2 ("zero-shot function calling"), which forbids any other text.
"""

from tokenform.frontends.tools.layout import Format, Name, PythonArguments, Wire

FORMAT = Format(
    name="llama3_pythonic",
    models="Llama 3.2, 3.3",
    wire=Wire(call=(Name(), "(", PythonArguments(), ")"), section=("[", "]"), between=", ", guess=True),
    special=("<|python_tag|>",),
    at_start=True,
    prefix="<|python_tag|>",
    dropped=("<|python_tag|>", "<|eot_id|>", "<|eom_id|>"),
    template=("<|start_header_id|>", "[func_name"),
)
