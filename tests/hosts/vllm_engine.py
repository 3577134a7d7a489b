"""What a whole vLLM engine writes on this machine's CPU, as JSON lines: run by its own Python.

    python tests/hosts/vllm_engine.py FOLDER [--drafts 3] < requests

A request is {"prompt", "max_tokens", "structured_outputs"}, an answer {"text", "reason", "tokens"} or
{"error"}; with "beams", a width, the answer is {"texts"}, those of the beams; "n" asks for so many
"texts", drawn at temperature 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

SETTINGS = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--drafts", type=int, default=0)
    given = parser.parse_args()
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    from vllm import LLM, SamplingParams
    from vllm.exceptions import VLLMValidationError
    from vllm.sampling_params import BeamSearchParams, StructuredOutputsParams

    ngram = {"method": "ngram", "num_speculative_tokens": given.drafts, "prompt_lookup_max": 3}
    llm = LLM(
        given.folder,
        dtype="float32",
        enforce_eager=True,
        max_model_len=512,
        max_num_seqs=16,  # wider batches are not drafted
        speculative_config=ngram if given.drafts else None,
    )
    for line in sys.stdin:
        asked = json.loads(line)
        outputs = StructuredOutputsParams(**asked["structured_outputs"])
        if "beams" in asked:
            wide = BeamSearchParams(
                beam_width=asked["beams"], max_tokens=asked["max_tokens"], structured_outputs=outputs
            )
            (found,) = llm.beam_search([{"prompt": asked["prompt"]}], wide, use_tqdm=False)
            tokenizer = llm.get_tokenizer()
            before = len(tokenizer.encode(asked["prompt"]))
            texts = [
                tokenizer.decode(one.tokens[before:], skip_special_tokens=True) for one in found.sequences
            ]
            print("answer", json.dumps({"texts": texts}), flush=True)
            continue
        many = asked.get("n", 0)
        drawing = {"temperature": float(bool(many)), "n": many or 1, "max_tokens": asked["max_tokens"]}
        params = SamplingParams(**drawing, structured_outputs=outputs)
        try:
            (result,) = llm.generate([asked["prompt"]], params, use_tqdm=False)
        except (ValueError, VLLMValidationError) as error:
            answer = {"error": str(error)}
        else:
            text = result.outputs[0]
            answer = {"text": text.text, "reason": text.finish_reason, "tokens": len(text.token_ids)}
            answer |= {"texts": [one.text for one in result.outputs]} if many else {}
        print("answer", json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
