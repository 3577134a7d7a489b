"""What drafts are worth inside vLLM on a CPU: none, its n-grams, and those of the constraint before them.

    python benchmarks/vllm_drafts.py .real/smollm2 --python .hosts-vllm/bin/python --count 8

Tool calls of BFCL as JSON, greedily, one request at a time; each way is an engine in a process of its own, by
vLLM's Python (`make hosts-engine`).  Tokens a pass count what was accepted; times are those of this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

WAYS = ("none", "n-grams", "constraint")
SETTINGS = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}


def write(model: str, way: str, drafts: int) -> None:
    """Writes the tasks that stdin has; by vLLM's Python."""
    from vllm import LLM, SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    from tokenform.integrations.vllm import plugin

    if way != "constraint":
        plugin.DRAFTED = 0
    ngram = {"method": "ngram", "num_speculative_tokens": drafts, "prompt_lookup_max": 3}
    drafting = {"speculative_config": ngram} if way != "none" else {}
    llm = LLM(
        model, dtype="float32", enforce_eager=True, max_model_len=2048, disable_log_stats=False, **drafting
    )
    texts, tokens, seconds = [], 0, 0.0
    for task in json.load(sys.stdin):
        outputs = StructuredOutputsParams(json=task["schema"])
        params = SamplingParams(temperature=0.0, max_tokens=120, structured_outputs=outputs)
        began = time.perf_counter()
        (done,) = llm.chat([{"role": "user", "content": task["prompt"]}], params, use_tqdm=False)
        seconds += time.perf_counter() - began
        tokens += len(done.outputs[0].token_ids)
        texts.append(done.outputs[0].text)
    counts = {one.name: getattr(one, "value", 0) for one in llm.get_metrics()}
    accepted = counts.get("vllm:spec_decode_num_accepted_tokens", 0)
    figures = {"pass": tokens / (tokens - accepted), "ms": 1000 * seconds / tokens, "texts": texts}
    print("figures", json.dumps(figures), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--python", default=".hosts-vllm/bin/python")
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--drafts", type=int, default=8)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        return write(given.model, given.way, given.drafts)
    from tokenform_bench.evaluate.tasks import make_tasks

    tasks = json.dumps(
        [{"prompt": one.prompt, "schema": one.schema} for one in make_tasks("bfcl", given.count, 1)]
    )
    first: Any = None
    for way in WAYS:
        command = [given.python, __file__, given.model, "--way", way, "--drafts", str(given.drafts)]
        environment = {**os.environ, **SETTINGS, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
        done = subprocess.run(command, input=tasks, capture_output=True, text=True, env=environment)
        found = [line for line in done.stdout.splitlines() if line.startswith("figures ")]
        if not found:
            raise SystemExit(done.stderr[-2000:])
        one = json.loads(found[0][8:])
        first = first or one["texts"]
        same = sum(a == b for a, b in zip(first, one["texts"], strict=True))
        figures = f"{one['pass']:5.2f} tokens a pass {one['ms']:7.1f} ms a token"
        print(f"{way:12} {figures}; texts equal {same} of {len(first)}", flush=True)
    return None


if __name__ == "__main__":
    main()
