from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from reference_trainer.tiny_model import END, WORDS, build_config, build_model, build_tokenizer

TOKENIZER = build_tokenizer()
IDS = st.lists(st.integers(1, len(WORDS)), max_size=30)


@given(IDS, IDS)
def test_decoding_is_concatenation_and_encoding_its_inverse(a: list[int], b: list[int]) -> None:
    assert TOKENIZER.decode(a + b) == TOKENIZER.decode(a) + TOKENIZER.decode(b)
    assert TOKENIZER(TOKENIZER.decode(a), add_special_tokens=False)["input_ids"] == a


def test_the_end_token_is_left_out_of_texts() -> None:
    ids = TOKENIZER(" left 3 so")["input_ids"]
    assert TOKENIZER.eos_token == END == TOKENIZER.pad_token
    assert (
        TOKENIZER.decode([*ids, TOKENIZER.eos_token_id], skip_special_tokens=True) == " left 3 so"
    )


def test_auto_tokenizer_reads_it_back(tmp_path: Path) -> None:
    TOKENIZER.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    text = " <gen> Q: 9 - 4 * 3 A: left 9 - 4 = 5 * 3 = 5 so \\boxed{ 5 } \n"
    assert again(text)["input_ids"] == TOKENIZER(text)["input_ids"]
    assert again.decode(again(text)["input_ids"]) == text
    assert again.padding_side == "left"


def test_a_word_without_a_token_is_an_error() -> None:
    with pytest.raises(Exception, match="UNK"):
        TOKENIZER(" left elephant")


@pytest.mark.parametrize(("size", "thousand"), [("S", 58), ("M", 152)])
def test_sizes(size: str, thousand: int) -> None:
    config = build_config(size)  # type: ignore[arg-type]
    assert config.vocab_size == len(TOKENIZER) == len(WORDS) + 1
    assert config.tie_word_embeddings
    parameters = sum(one.numel() for one in build_model(size).parameters())  # type: ignore[arg-type]
    assert round(parameters / 1000) == pytest.approx(thousand, abs=2)
