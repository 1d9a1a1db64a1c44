"""Rollout functions: roles, log-probabilities, several roles in one sequence."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import trl
from packaging.version import Version
from roledrift_trl import RoleDriftCallback
from trl import GRPOTrainer

from roledrift.store.reader import open_run
from tests.integrations.trl_tiny import (
    PAIR,
    make_trainer,
    tiny_dataset,
    tiny_model,
    tiny_tokenizer,
    token_logps,
    trace,
    watched,
)


def test_a_rollout_function_may_name_the_roles_and_log_probs(tmp_path: Path) -> None:
    def rollout(prompts: list[str], trainer: GRPOTrainer) -> dict[str, list[Any]]:
        short = [prompt.startswith("agg") for prompt in prompts]
        ids = [[5, 6, 1] if one else [5, 6, 7, 5, 1] for one in short]
        return {
            "prompt_ids": trainer.processing_class(prompts)["input_ids"],
            "completion_ids": ids,
            "logprobs": [[-1.0] * len(one) for one in ids],
            "role": ["aggregator" if one else "generator" for one in short],
        }

    trainer = make_trainer(
        tmp_path,
        [RoleDriftCallback(PAIR, tmp_path / "run")],
        train_dataset=tiny_dataset().remove_columns("role"),
        rollout_func=rollout,
        per_device_train_batch_size=16,
    )
    trainer.train()
    for record in open_run(tmp_path / "run").steps():
        assert not record.faults
        for role, length in (("generator", 5.0), ("aggregator", 3.0)):
            if role in record.groups:
                assert record.mean(role, "length") == length
                # exp(mean NLL) of log-probs that are all -1
                assert record.mean(role, "rollout.behind_ppl") == pytest.approx(math.e)


def conversation(prompts: list[str], trainer: GRPOTrainer) -> dict[str, list[Any]]:
    """Generator, a token of the environment, aggregator, generator again; all in one sequence."""
    ids = [[5, 6, 2, 7, 7, 7, 1] if i % 2 else [6, 2, 7, 5, 5, 1] for i in range(len(prompts))]
    masks = [[0, 0, -1, 1, 1, 1, 0] if i % 2 else [0, -1, 1, 0, 0, 0] for i in range(len(prompts))]
    return {
        "prompt_ids": trainer.processing_class(prompts)["input_ids"],
        "completion_ids": ids,
        "logprobs": [[-1.0 - one for one in mask] for mask in masks],
        "env_mask": [[int(one >= 0) for one in mask] for mask in masks],
        "role_mask": masks,
    }


class SeenTurns:
    __name__ = "seen_turns"

    def __init__(self) -> None:
        self.calls: list[list[Any]] = []

    def __call__(self, prompts: Any, completion_ids: Any, role_mask: Any, **_: Any) -> list[float]:
        rewards = [float(len(prompt) + i % 3) for i, prompt in enumerate(prompts)]
        self.calls.append(list(zip(prompts, completion_ids, role_mask, rewards, strict=True)))
        return rewards


def test_several_roles_in_one_sequence(tmp_path: Path) -> None:
    seen = SeenTurns()
    changes: dict[str, Any] = {
        "train_dataset": tiny_dataset().remove_columns("role"),
        "rollout_func": conversation,
        "temperature": 0.7,
        "gradient_accumulation_steps": 2,
    }
    alone = make_trainer(tmp_path / "alone", [], reward=SeenTurns(), **changes)
    alone.train()
    trainer, records = watched(
        tmp_path, reward=seen, config={"rescore": {"rows_per_role": 99}}, **changes
    )
    assert trace(trainer) == trace(alone)
    model, tokenizer = tiny_model().eval(), tiny_tokenizer()
    for record, call in zip(records, seen.calls, strict=True):
        assert not record.faults
        assert not record.gradients
        assert record.labels["gradients"] == "not measured: one sequence holds several roles"
        for index, role in enumerate(PAIR):
            lengths = [mask.count(index) for _, _, mask, _ in call]
            stat = record.stat(role, "length")
            assert stat is not None
            assert (stat.n, stat.mean) == (len(call), pytest.approx(np.mean(lengths)))
            # Log-probs of the rollout are minus one more than the role's index.
            assert record.mean(role, "rollout.behind_ppl") == pytest.approx(math.exp(1 + index))
            assert record.mean(role, "reward") == pytest.approx(np.mean([r for *_, r in call]))
            assert record.mean(role, "zero_variance") == 0.0
            assert record.mean(role, "updates") == 1.0
            update = record.stat(role, "update.k3")
            assert update is not None
            assert update.n == sum(lengths)
    nlls: dict[int, list[float]] = {0: [], 1: []}
    for text, ids, mask, _ in seen.calls[0]:
        logp = token_logps(model, tokenizer(text)["input_ids"], ids, 0.7).tolist()
        for index, kept in nlls.items():
            its = [-one for one, role in zip(logp, mask, strict=True) if role == index]
            kept.append(math.exp(sum(its) / len(its)))
    for index, role in enumerate(PAIR):
        assert records[0].mean(role, "ppl") == pytest.approx(np.mean(nlls[index]), rel=1e-4)
    for sample in open_run(tmp_path / "run").samples():
        assert (
            sample.text
            in {"generator": ("a b", "b a a"), "aggregator": ("c c c", "c")}[sample.role]
        )


def test_a_role_that_acts_and_is_not_trained_is_measured_by_its_outputs(tmp_path: Path) -> None:
    """Its tokens bear no loss. It had length 0 and no text, and is the first that is captured."""

    def rollout(prompts: list[str], trainer: GRPOTrainer) -> dict[str, list[Any]]:
        return {
            "prompt_ids": trainer.processing_class(prompts)["input_ids"],
            "completion_ids": [[5, 6, 2, 7, 7, 7, 1]] * len(prompts),
            "logprobs": [[-1.0] * 7] * len(prompts),
            "env_mask": [[1, 1, 0, 0, 0, 0, 0]] * len(prompts),
            "role_mask": [[0, 0, -1, 1, 1, 1, 1]] * len(prompts),
        }

    _, records = watched(tmp_path, rollout_func=rollout, reward=SeenTurns(), max_steps=2)
    texts = {one.role: one.text for one in open_run(tmp_path / "run").samples()}
    assert texts == {"generator": "a b", "aggregator": "c c c"}
    for record in records:
        assert record.mean("generator", "length") == 2
        assert record.mean("aggregator", "length") == 4
        assert record.stat("generator", "ppl") is not None
        assert record.stat("aggregator", "reward") is not None


@pytest.mark.parametrize(
    ("mask", "fault"),
    [([0, 1], "CaptureError"), ([0, 0, -1, 1, 1, 1, 7], "CaptureError")],
)
def test_a_role_mask_that_does_not_fit_is_counted(
    tmp_path: Path, mask: list[int], fault: str
) -> None:
    def rollout(prompts: list[str], trainer: GRPOTrainer) -> dict[str, list[Any]]:
        return {
            "prompt_ids": trainer.processing_class(prompts)["input_ids"],
            "completion_ids": [[5, 6, 2, 7, 7, 7, 1]] * len(prompts),
            "logprobs": [[-1.0] * 7] * len(prompts),
            "role_mask": [mask] * len(prompts),
        }

    _, records = watched(tmp_path, rollout_func=rollout, reward=SeenTurns(), max_steps=2)
    for record in records:
        assert f"after _generate_and_score_completions: {fault}" in record.faults
        assert "length" not in record.groups.get("*", {})


LOSES = Version(trl.__version__) > Version("1.8.0")
"""TRL 1.8 cannot train where the engine gives no log-probability for a token."""


class Engine:
    """In the place of TRL's vLLM: samples from the model, and rounds what it says of it."""

    model: Any

    def __init__(self, model: Any, temperature: float, **_: Any) -> None:
        Engine.model, self.temperature = model, temperature

    def sync_weights(self) -> None:
        pass

    def generate(self, prompts: Any, num_generations: int, **_: Any) -> Any:
        assert num_generations == 4
        ids, said = [], []
        for prompt in prompts:
            with torch.no_grad():
                whole = self.model.generate(
                    torch.tensor([prompt]), do_sample=True, max_new_tokens=8, top_k=0,
                    temperature=self.temperature,
                )  # fmt: skip
            ids.append(whole[0, len(prompt) :].tolist())
            logp_T = token_logps(self.model, prompt, ids[-1], self.temperature)
            said.append([[round(one * 8) / 8] for one in logp_T.tolist()])
        if LOSES:
            said[0][0] = [None]  # vLLM has had NaN here
        return prompts, ids, said, None


def test_the_log_probs_of_the_sampling_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``use_vllm`` with TRL's importance correction: its log-probs, its temperature, its ratio."""
    monkeypatch.setattr("trl.trainer.grpo_trainer.VLLMGeneration", Engine)
    changes: dict[str, Any] = {
        "use_vllm": True,
        "vllm_importance_sampling_mode": "token_truncate",
        "per_device_train_batch_size": 16,
        "temperature": 0.7,
        "top_k": 0,
    }
    alone = make_trainer(tmp_path / "alone", [], **changes)
    alone.train()
    trainer, records = watched(tmp_path, **changes)
    assert trace(trainer) == trace(alone)
    for record, row in zip(records, trainer.state.log_history, strict=False):
        assert record.faults == ({"non-finite log-prob": 1} if LOSES else {})
        assert record.labels["rollout"] == "policy vs rollout engine, T=0.7, 0 steps between"
        assert record.mean("*", "rollout.refused") is None
        ratio, lengths = record.stat("*", "rollout.ratio"), record.stat("*", "length")
        assert ratio is not None
        assert lengths is not None
        tokens = round(lengths.n * lengths.mean)
        assert ratio.n == tokens - LOSES, "all but the one that the engine lost"
        # TRL takes 1 for that one.
        whole = (ratio.mean * ratio.n + LOSES) / tokens
        assert row["sampling/importance_sampling_ratio/mean"] == pytest.approx(whole, rel=1e-4)
        assert 0 < record.mean("*", "rollout.k3") < 0.01
