"""Counting the tokens of texts whose source did not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from roledrift.errors import ConfigError
from roledrift.extensions import attempt

_FILE = "tokenizer.json"


def counter(name: str) -> Callable[[str], int]:
    """A function that counts the tokens of a text, without special ones.

    Args:
        name: A ``tokenizer.json``, a model's folder that holds one, or a name on the Hugging Face
            Hub.

    Raises:
        ConfigError: If there is no such tokenizer, or the package ``tokenizers`` is missing.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ConfigError(
            "--tokenizer needs the package tokenizers: pip install tokenizers"
        ) from None
    path = Path(name)
    file = path / _FILE if path.is_dir() else path
    load = Tokenizer.from_file if file.is_file() else Tokenizer.from_pretrained
    tokenizer, why = attempt("tokenizer", load, str(file) if file.is_file() else name)
    if tokenizer is None:
        raise ConfigError(
            f"--tokenizer {name!r} cannot be loaded ({why}); give a tokenizer.json, a folder "
            "that holds one, or a name on the Hugging Face Hub"
        )

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False))

    return count
