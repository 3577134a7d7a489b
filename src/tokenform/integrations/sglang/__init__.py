"""SGLang: `--grammar-backend tokenform`.

Purpose: `pip install "tokenform[sglang]"`, then name the backend; the plug-in (`plugin.py`, found by its
entry point) registers it (`backend.py`).  Without the option SGLang keeps its own.
Invariant: a text is complete and valid when it ends, `max_new_tokens` included; what can't be enforced is
refused with a 400 that names the place.

    python -m sglang.launch_server --model-path Qwen/Qwen3-0.6B --grammar-backend tokenform
"""
