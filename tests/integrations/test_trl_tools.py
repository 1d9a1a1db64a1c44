"""Tools and environments of TRL: what a tool answers is in the sequence, and is no role's.

The tiny model really calls them: some of its tokens are whole tool calls.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import trl
from datasets import Dataset
from roledrift_trl import RoleDriftCallback
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

from roledrift.records import StepRecord
from roledrift.store.reader import open_run
from tests.integrations.trl_tiny import (
    PAIR,
    make_trainer,
    tiny_model,
    tiny_tokenizer,
    token_logps,
    trace,
)

CALLS = [
    f'<tool_call>\n{{"name": "{name}", "arguments": {{"n": 2}}}}\n</tool_call>'
    for name in ("count", "look", "fail")
]
TURNS = ["<|im_start|>", "<|im_end|>"]
TEMPLATE = Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "TRL_EXPERIMENTAL_SILENCE", "1")


def calling_tokenizer() -> PreTrainedTokenizerFast:
    """The tiny tokenizer, with a token per tool call and Qwen3's way to write turns."""
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"eos_token": TURNS[1], "bos_token": TURNS[0]})
    tokenizer.add_tokens([AddedToken(one, normalized=False) for one in CALLS])
    tokenizer.chat_template = TEMPLATE.read_text()
    return tokenizer


def count(n: int) -> str:
    """Says letters.

    Args:
        n: How many.

    Returns:
        That many letters.
    """
    return " ".join("abc"[:n])


def fail(n: int) -> str:
    """Fails.

    Args:
        n: Ignored.

    Returns:
        Nothing.
    """
    raise ValueError(n)


class Room:
    """An environment: its method is a tool, and it gives the reward."""

    def __init__(self) -> None:
        self.looks = 0

    def reset(self, **_: Any) -> str | None:
        self.looks = 0
        return " a"

    def look(self, n: int) -> str:
        """Looks around.

        Args:
            n: How far.

        Returns:
            What is seen.
        """
        self.looks += n
        return "b c b"

    def get_reward(self) -> float:
        return float(self.looks)


class Cellar(Room):
    """Another environment."""

    def reset(self, **_: Any) -> str | None:
        self.looks = 1
        return None


def conversations(column: str, names: tuple[str, str]) -> Dataset:
    return Dataset.from_list(
        [
            {"prompt": [{"role": "user", "content": f"{x} {y}"}], column: name}
            for x in "abc"
            for y in "abc"
            for name in names
        ]
    )


def length(completion_ids: Any, **_: Any) -> list[float]:
    return [float(len(ids)) for ids in completion_ids]


def train(
    out: Path, monkeypatch: pytest.MonkeyPatch, callbacks: list[Any], **changes: Any
) -> tuple[Any, list[Any]]:
    """A trained trainer, and what each generation was, as TRL returns it."""
    tokenizer = calling_tokenizer()
    trainer = make_trainer(
        out,
        callbacks,
        model=tiny_model(len(tokenizer)),
        processing_class=tokenizer,
        per_device_train_batch_size=16,
        max_completion_length=48,
        temperature=0.7,
        **changes,
    )
    seen: list[Any] = []
    generate = trainer._generate

    def recorded(prompts: Any) -> Any:
        result = generate(prompts)
        seen.append(result[:3])
        return result

    monkeypatch.setattr(trainer, "_generate", recorded)
    trainer.train()
    return trainer, seen


def pairs(
    out: Path, monkeypatch: pytest.MonkeyPatch, column: str = "role", **changes: Any
) -> tuple[Any, list[Any], list[StepRecord]]:
    """Trained with and without the callback, which must be the same."""
    alone, _ = train(out / "alone", monkeypatch, [], **changes)
    config = {"rescore": {"rows_per_role": 99}}
    callback = RoleDriftCallback(
        changes.pop("workflow", PAIR), out / "run", role_column=column, config=config
    )
    trainer, seen = train(out, monkeypatch, [callback], **changes)
    assert trace(trainer) == trace(alone)
    return trainer, seen, open_run(out / "run").steps()


def test_what_a_tool_says_belongs_to_no_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = conversations("role", ("generator", "aggregator"))
    roles: list[list[str]] = []

    def reward(completion_ids: Any, role: Any, **_: Any) -> list[float]:
        roles.append(list(role))
        return length(completion_ids)

    trainer, seen, records = pairs(
        tmp_path, monkeypatch, tools=[count, fail], train_dataset=data, reward=reward
    )
    del roles[:3]  # those of the training alone
    logs = trainer.state.log_history
    assert sum(row["tools/call_frequency"] for row in logs[:3]) > 0
    assert any(row["tools/failure_frequency"] > 0 for row in logs[:3])
    for record, row, (_, ids, masks), whose in zip(records, logs, seen, roles, strict=False):
        assert not record.faults
        assert any(0 in mask for mask in masks), "a tool has answered"
        for role in set(whose):
            its = [mask for mask, name in zip(masks, whose, strict=True) if name == role]
            stat = record.stat(role, "length")
            assert stat is not None
            assert (stat.n, stat.mean) == (len(its), pytest.approx(np.mean([sum(m) for m in its])))
            update = record.stat(role, "update.k3")
            assert update is not None
            assert update.n == sum(map(sum, its)), "re-scored without the tools' tokens"
        assert row["completions/mean_length"] == pytest.approx(record.mean("*", "length"))
        assert len(ids) == 16
    # The first step was scored by the model as it was made.
    model = tiny_model(len(calling_tokenizer())).eval()
    prompts, ids, masks = seen[0]
    ppl = []
    for prompt, one, mask in zip(prompts, ids, masks, strict=True):
        nll = -token_logps(model, list(prompt), list(one), 0.7)[torch.tensor(mask).bool()]
        ppl.append(nll.mean().exp().item())
    assert records[0].mean("*", "ppl") == pytest.approx(np.mean(ppl), rel=1e-4)


def test_environments_may_be_the_roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TRL's own column ``environment`` says whose row it is; the environments give the rewards."""
    data = conversations("environment", ("generator", "aggregator"))
    _, seen, records = pairs(
        tmp_path,
        monkeypatch,
        column="environment",
        train_dataset=data,
        reward=length,
        environment_factory={"generator": Room, "aggregator": Cellar},
    )
    for record, (_, _, masks) in zip(records, seen, strict=True):
        assert not record.faults
        assert record.mean("*", "length") == pytest.approx(np.mean([sum(m) for m in masks]))
    assert any(0 in mask for _, _, masks in seen for mask in masks)
    samples = open_run(tmp_path / "run").samples()
    assert {one.role for one in samples} == set(PAIR)
    assert any('"name": "look"' in one.text for one in samples), "a call is what the role said"
    assert not any("tool_response" in one.text for one in samples), "its answer is not"
