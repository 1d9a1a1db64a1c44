"""Conversations as tokens and outputs as texts: as the tokenizer says, or as the paper's code does.

The released code of arXiv 2605.24202 renders the chat itself instead of applying the template that
comes with Qwen3: a system message that Qwen3's template does not have, and an empty think block
before every assistant turn, not only before the one to be written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from transformers import PreTrainedTokenizerFast

from reference_trainer.episodes import Message
from reference_trainer.errors import SettingsError

_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
_BEGIN, _END = "<|im_start|>", "<|im_end|>"
_NO_THOUGHT = "<think>\n\n</think>\n\n"
_THOUGHT_ENDS = "</think>"
_TOOL_CALL = re.compile(r"<tool_call>.*?</tool_call>", re.DOTALL)


def encode(
    conversations: Sequence[tuple[Message, ...]],
    tokenizer: PreTrainedTokenizerFast,
    *,
    released: bool = False,
) -> list[tuple[int, ...]]:
    """Token ids of the prompts.

    Args:
        conversations: One per prompt.
        tokenizer: Its chat template renders them; without one, turns are joined as they are.
        released: Render them with :func:`released_prompt` instead.
    """
    if released:
        texts = [released_prompt(messages) for messages in conversations]
    elif tokenizer.chat_template is None:
        texts = ["".join(message.text for message in messages) for messages in conversations]
    else:
        texts = [_templated(messages, tokenizer) for messages in conversations]
    return [tuple(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]


def _templated(messages: Sequence[Message], tokenizer: PreTrainedTokenizerFast) -> str:
    return str(
        tokenizer.apply_chat_template(
            [{"role": message.speaker, "content": message.text} for message in messages],
            tokenize=False,
            add_generation_prompt=True,
            # Reasoning models would spend the whole output on it; others ignore this.
            enable_thinking=False,
        )
    )


def decode(
    outputs: Sequence[Sequence[int]], tokenizer: PreTrainedTokenizerFast, *, released: bool = False
) -> list[str]:
    """Texts of the outputs, without the end token; with ``released`` by :func:`released_reply`."""
    if not outputs:  # the tokenizer would make one empty text of it
        return []
    rows = [list(output) for output in outputs]
    texts = tokenizer.batch_decode(rows, skip_special_tokens=not released)
    return [released_reply(text) for text in texts] if released else list(texts)


def released_prompt(messages: Sequence[Message]) -> str:
    """A conversation as the released code renders it for Qwen3 with thinking turned off."""
    turns = [f"{_BEGIN}system\n{_SYSTEM}{_END}\n"]
    for message in messages:
        text = message.text
        if message.speaker == "assistant":
            text = _NO_THOUGHT + text.strip()
        turns.append(f"{_BEGIN}{message.speaker}\n{text}{_END}\n")
    return "".join(turns) + f"{_BEGIN}assistant\n{_NO_THOUGHT}"


def released_reply(text: str) -> str:
    """What the released code takes for the reply in ``text``, an output with its end token.

    What precedes the only ``</think>``, calls of tools, and blanks at the ends are left out.
    """
    once = text.count(_THOUGHT_ENDS) == 1
    rest = text.partition(_THOUGHT_ENDS)[2] if once else text
    rest = rest.removesuffix(_END).removesuffix(f"{_END}\n").strip()
    return _TOOL_CALL.sub("", rest).strip()


def refuse_other_chats(tokenizer: PreTrainedTokenizerFast, where: str) -> None:
    """Raise a :class:`SettingsError` if ``tokenizer`` lacks the tokens of Qwen's chats."""
    missing = [token for token in (_BEGIN, _END) if token not in tokenizer.get_vocab()]
    if missing:
        raise SettingsError(
            f"paper_compat.chat renders conversations for Qwen models, and the tokenizer in "
            f"{where} has no token {' or '.join(missing)}: give the folder of a Qwen model in "
            "model.path, or set paper_compat.chat = false"
        )
