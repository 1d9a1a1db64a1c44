"""A tokenizer and Qwen3 models small enough to be trained with RL on one CPU core.

Every token is one word with a leading space, so decoding is concatenation: the text of ``a + b`` is
the text of ``a`` followed by the text of ``b``, and re-encoding a text gives back exactly its
tokens. A candidate answer can therefore be quoted inside another role's prompt without any drift of
tokens.
"""

from __future__ import annotations

from typing import Literal

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

Size = Literal["S", "M", "L"]

END = "<end>"
"""End of a turn, and padding: a padding token of its own would be an id that no text trains."""

WORDS: tuple[str, ...] = (
    *"0123456789",
    *("+", "-", "*", "=", "(", ")", ";", ":"),
    *("Q:", "A:", "so", "left", "right", "\\boxed{", "}", "---"),
    *("wait", "check", "hmm", "the", "answer", "is", "again"),
    *("<gen>", "<agg>", "<eval>", "<rev>", "<orch>", "<work>", "<syn>"),
    *("Correct", "Incorrect", "plan:", "STRATEGY", "steps", "flaw", "fix"),
    *("add", "sub", "mul", "\n", "```python", "```", "def", "f(x):", "return", "x"),
)

_SIZES: dict[Size, tuple[int, int, int, int]] = {
    "S": (48, 2, 128, 16),
    "M": (64, 3, 192, 16),
    "L": (128, 4, 384, 32),
}
"""Hidden size, layers, feed-forward size, size of an attention head."""

MAX_POSITIONS = 512


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The word-level tokenizer.

    Returns:
        A fast tokenizer that ``AutoTokenizer`` loads again after ``save_pretrained``. Encoding a
        word that is not in the vocabulary is an error: there is no unknown token that could be
        sampled.
    """
    vocabulary = {END: 0} | {f" {word}": i for i, word in enumerate(WORDS, start=1)}
    raw = Tokenizer(models.WordLevel(vocabulary))  # no unknown token, on purpose
    raw.pre_tokenizer = pre_tokenizers.Split(Regex(" [^ ]+"), "isolated")
    raw.decoder = decoders.Fuse()
    tokenizer: PreTrainedTokenizerFast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw,
        eos_token=END,
        pad_token=END,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=MAX_POSITIONS,
    )
    return tokenizer


def build_config(size: Size) -> Qwen3Config:
    """Configuration of a tiny Qwen3: tied embeddings, four query heads on two key-value heads.

    Args:
        size: ``"S"`` (58 k parameters), ``"M"`` (152 k) or ``"L"`` (796 k).
    """
    hidden, layers, feed_forward, head = _SIZES[size]
    return Qwen3Config(
        # Exactly the vocabulary: an id without a word could be sampled and has no text.
        vocab_size=len(WORDS) + 1,
        hidden_size=hidden,
        num_hidden_layers=layers,
        intermediate_size=feed_forward,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=head,
        tie_word_embeddings=True,
        max_position_embeddings=MAX_POSITIONS,
        # At these widths the usual 0.02 starts in a plateau: 0.1 halves the warm-up.
        initializer_range=0.1,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
    )


def build_model(size: Size) -> Qwen3ForCausalLM:
    """An untrained model; the caller seeds torch's global generator."""
    model: Qwen3ForCausalLM = Qwen3ForCausalLM(build_config(size))  # type: ignore[no-untyped-call]
    return model
