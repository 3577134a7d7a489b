"""vLLM: every structured output that a request asks for, by this engine.

Purpose: `pip install "tokenform[vllm]"` is all: the plug-in (`plugin.py`, found by its entry point) puts the
backend (`backend.py`) in the place of vLLM's "auto".  Off by `VLLM_PLUGINS` (any list without "tokenform"),
or for an engine by naming another backend (`--structured-outputs-config.backend xgrammar`).
Invariant: a text is complete and valid when it ends, `max_tokens` included; what can't be enforced is refused
with a 400 that names the place; a fault costs one request.

    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    schema = {"type": "array", "items": {"type": "integer", "multipleOf": 7}, "uniqueItems": True}
    params = SamplingParams(max_tokens=40, structured_outputs=StructuredOutputsParams(json=schema))
    print(LLM("Qwen/Qwen3-0.6B").generate("Three multiples of seven:", params)[0].outputs[0].text)
"""
