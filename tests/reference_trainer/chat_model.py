"""The untrained model that tests load as one of a user's own."""

from benchmarks.chat_model import make_chat_model, make_tokenizer

__all__ = ["make_chat_model", "make_tokenizer"]
