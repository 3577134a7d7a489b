"""Llama 4: a Python list of calls, bare or between two special tokens.

Source: Meta's prompt format for Llama 4 and its chat template.
"""

from tokenform.frontends.tools.layout import Format, Name, PythonArguments, Wire

_CALL = (Name(), "(", PythonArguments(), ")")

FORMAT = Format(
    name="llama4_pythonic",
    models="Llama 4",
    wire=Wire(call=_CALL, section=("[", "]"), between=", ", guess=True),
    also=(
        Wire(call=_CALL, section=("<|python_start|>[", "]<|python_end|>"), between=", ", written=True),
        Wire(call=_CALL, section=("<|python_start|>[", "]"), between=", ", written=True),
    ),
    special=("<|python_start|>", "<|python_end|>"),
    at_start=True,
    dropped=("<|python_start|>", "<|python_end|>", "<|eot|>", "<|eom|>"),
    template=("<|header_start|>",),
)
