"""FireFunction 2: the word `functools`, then a JSON list of calls, without an end.

Source: the prompt of fireworks-ai/llama-3-firefunction-v2 ("functools[{"name": ..., "arguments": ...}]").
"""

from dataclasses import replace

from tokenform.frontends.tools.formats.phi4 import FORMAT as PHI4

FORMAT = replace(
    PHI4,
    name="firefunction",
    models="FireFunction 2",
    dropped=("<|eot_id|>",),
    template=("functools", "<|start_header_id|>"),
)
