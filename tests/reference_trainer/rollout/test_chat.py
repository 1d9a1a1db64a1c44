from pathlib import Path
from typing import Any

import pytest

from reference_trainer.episodes import Message
from reference_trainer.errors import SettingsError
from reference_trainer.rollout.chat import (
    decode,
    encode,
    refuse_other_chats,
    released_prompt,
    released_reply,
)
from reference_trainer.tiny_model import build_tokenizer
from tests.reference_trainer.chat_model import make_tokenizer
from tests.reference_trainer.recorded import FACTS


@pytest.mark.parametrize("fact", FACTS["conversations"], ids=lambda fact: str(fact["messages"]))
def test_conversations_are_rendered_as_in_the_papers_code(fact: dict[str, Any]) -> None:
    messages = [Message(speaker, text) for speaker, text in fact["messages"]]
    assert released_prompt(messages) == fact["prompt"]


@pytest.mark.parametrize("fact", FACTS["completions"], ids=lambda fact: repr(fact["completion"]))
def test_replies_are_read_as_in_the_papers_code(fact: dict[str, Any]) -> None:
    assert released_reply(fact["completion"]) == fact["content"]


def test_tokens_of_both_renderings() -> None:
    tokenizer = make_tokenizer()
    talk = [(Message("user", "Solve 1 + 1"), Message("assistant", " 2 "), Message("user", "No."))]
    own, released = (
        tokenizer.decode(list(encode(talk, tokenizer, released=on)[0])) for on in (False, True)
    )
    thought = "<think>\n\n</think>\n\n"
    assert own.count(thought) == 1
    assert "You are Qwen" not in own
    assert released.count(thought) == 2
    assert released.startswith("<|im_start|>system\nYou are Qwen")
    assert "</think>\n\n2<|im_end|>" in released


def test_outputs_of_both_readings() -> None:
    tokenizer = make_tokenizer()
    outputs = tokenizer([" a </think> b <|im_end|>"], add_special_tokens=False)["input_ids"]
    assert decode(outputs, tokenizer) == [" a </think> b "]
    assert decode(outputs, tokenizer, released=True) == ["b"]
    assert decode([], tokenizer) == []


def test_a_tokenizer_without_the_tokens_of_qwens_chats() -> None:
    refuse_other_chats(make_tokenizer(), "here")
    with pytest.raises(SettingsError, match=r"in models/tiny has no token <\|im_start\|> or"):
        refuse_other_chats(build_tokenizer(), str(Path("models/tiny")))
