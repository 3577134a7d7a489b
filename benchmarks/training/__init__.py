"""Training of the built-in model: its data (by rule, from word lists), its tokenizer, its scores.

    python -m benchmarks.training.train
    python -m benchmarks.training.evaluate

They write and read the weights of the checkout (`src/tokenform/builtin/weights`).
"""
