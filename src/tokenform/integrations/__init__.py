"""Other libraries: models and tokenizers of transformers, and the one-call face on top of them."""
