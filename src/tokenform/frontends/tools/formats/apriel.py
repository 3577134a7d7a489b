"""Apriel 1.5 and 1.6: a marker, then a JSON list of calls.

Source: the chat template of ServiceNow-AI/Apriel-1.5-15b-Thinker.  The prompt opens the thought with words of
its own; the answer begins behind `[BEGIN FINAL RESPONSE]`.
"""

from dataclasses import replace

from tokenform.frontends.tools.formats.hunyuan import FORMAT as HUNYUAN

FORMAT = replace(
    HUNYUAN,
    name="apriel",
    models="Apriel 1.5, 1.6",
    special=("<tool_calls>", "</tool_calls>"),
    reasoning=("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"),
    trigger_ends_reasoning=True,
    prompt_opens=True,
    dropped=("[END FINAL RESPONSE]", "<|end|>"),
    template=("<tool_calls>", "[BEGIN FINAL RESPONSE]"),
)
