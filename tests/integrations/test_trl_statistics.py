"""What is measured in real GRPO and RLOO trainings, beside a direct computation."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from roledrift_trl import RoleDriftCallback

from roledrift.records import StepRecord
from roledrift.store.reader import open_run
from tests.integrations.trl_tiny import (
    PAIR,
    TRAINERS,
    Seen,
    make_trainer,
    tiny_dataset,
    tiny_model,
    tiny_tokenizer,
    token_logps,
    watched,
)


def test_the_distance_from_the_base_model(tmp_path: Path) -> None:
    seen = Seen()
    trainer, records = watched(
        tmp_path,
        reward=seen,
        per_device_train_batch_size=16,
        max_steps=2,
        temperature=0.7,
        config={"tier": "full", "rescore": {"rows_per_role": 16}},
    )
    # The adapter is new: before the first step the policy is the base model.
    assert records[0].mean("*", "reference.k3") == pytest.approx(
        records[0].mean("*", "update.k3"), rel=1e-4
    )
    rows = seen.calls[1]
    sums = [0.0, 0.0]
    for row in rows:
        prompt = tiny_tokenizer()(row["prompt"])["input_ids"]
        a, b = (
            token_logps(model, prompt, row["ids"], 0.7)
            for model in (trainer.model.eval(), tiny_model().eval())
        )
        sums[0] += sum((x - y).exp().item() - (x - y).item() - 1 for x, y in zip(a, b, strict=True))
        sums[1] += len(row["ids"])
    assert records[1].mean("*", "reference.k3") == pytest.approx(sums[0] / sums[1], rel=1e-3)
    assert records[1].labels["reference"] == "policy vs reference, T=0.7"
    assert records[1].labels["update"] == (
        "after vs before the optimizer step, T=0.7, 1 step between"
    )
    assert records[1].labels["reference model"] == "the model with its adapter off"
    for record, call in zip(records, seen.calls, strict=True):
        for role in PAIR:
            there = any(row["role"] == role for row in call)
            assert record.mean(role, "updates") == float(there)


@pytest.mark.parametrize("kind", TRAINERS)
def test_statistics_per_role_equal_a_direct_computation(tmp_path: Path, kind: str) -> None:
    seen = Seen()
    trainer, records = watched(
        tmp_path,
        reward=seen,
        gradient_accumulation_steps=3,
        per_device_train_batch_size=8,
        temperature=0.7,
        kind=kind,
        beta=0.0,
    )
    assert len(seen.calls) == len(records) == 3
    for record, call in zip(records, seen.calls, strict=True):
        for role in PAIR:
            rows = [row for row in call if row["role"] == role]
            lengths = [len(row["ids"]) for row in rows]
            stat = record.stat(role, "length")
            assert stat is not None
            assert (stat.n, stat.high) == (len(rows), max(lengths))
            assert stat.mean == pytest.approx(np.mean(lengths))
            cut = [is_cut(row) for row in rows]
            assert record.mean(role, "truncated") == pytest.approx(np.mean(cut))
            reward = np.mean([row["reward"] for row in rows])
            assert record.mean(role, "reward") == pytest.approx(reward)
            groups = [rows[i : i + 4] for i in range(0, len(rows), 4)]
            equal = [len({row["reward"] for row in group}) == 1 for group in groups]
            assert record.mean(role, "zero_variance") == pytest.approx(np.mean(equal))
        assert record.totals["reward"] == pytest.approx(np.mean([row["reward"] for row in call]))
    # Fresh LoRA layers change nothing: the first step was scored by the model as it was made.
    for role in PAIR:
        ppl, entropy = direct_scores([row for row in seen.calls[0] if row["role"] == role], 0.7)
        assert records[0].mean(role, "ppl") == pytest.approx(ppl, rel=1e-4)
        assert records[0].mean(role, "entropy") == pytest.approx(entropy, rel=1e-4)
    logs = trainer.state.log_history[: len(records)]
    for record, row in zip(records, logs, strict=True):
        assert row["roledrift/generator/length"] == record.mean("generator", "length")
        # What TRL reports over all roles together.
        assert row["completions/mean_length"] == pytest.approx(record.mean("*", "length"))
        assert row["completions/clipped_ratio"] == pytest.approx(record.mean("*", "truncated"))
        assert row["reward"] == pytest.approx(record.mean("*", "reward"))


def is_cut(row: dict[str, Any]) -> bool:
    return len(row["ids"]) == 8 and row["ids"][-1] not in (0, 1)


def direct_scores(rows: list[dict[str, Any]], temperature: float) -> tuple[float, float]:
    """Mean perplexity per row and entropy pooled over tokens, one row at a time, no padding."""
    model, tokenizer = tiny_model().eval(), tiny_tokenizer()
    ppl, entropy = [], []
    for row in rows:
        prompt = tokenizer(row["prompt"])["input_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([prompt + row["ids"]])).logits[0]
        logp = torch.log_softmax(logits[len(prompt) - 1 : -1] / temperature, dim=-1)
        nll = [-logp[position, token].item() for position, token in enumerate(row["ids"])]
        ppl.append(math.exp(sum(nll) / len(nll)))
        entropy += (-(logp.exp() * logp).sum(-1)).tolist()
    return float(np.mean(ppl)), float(np.mean(entropy))


@pytest.mark.parametrize(("kind", "accumulation"), [("grpo", 1), ("grpo", 2), ("rloo", 1)])
def test_the_update_is_what_the_next_pass_over_the_rows_sees(
    tmp_path: Path, kind: str, accumulation: int
) -> None:
    _, records = watched(
        tmp_path,
        num_iterations=2,
        gradient_accumulation_steps=accumulation,
        max_steps=4,
        config={"rescore": {"rows_per_role": 16}},
        kind=kind,
        beta=0.0,
    )
    for first, second in ((records[0], records[1]), (records[2], records[3])):
        for group in (*PAIR, "*"):
            assert (first.stat(group, "length") is None) == (first.stat(group, "update.k3") is None)
            assert second.stat(group, "length") is None, "generated once, counted once"
            if first.stat(group, "update.k3") is None:
                continue
            assert first.mean(group, "update.k3") > 1e-6
            for name in ("k3", "chi2", "k1"):
                after = second.stat(group, f"old.{name}")
                update = first.stat(group, f"update.{name}")
                assert after is not None
                assert update is not None
                assert update.n == after.n
                assert update.mean == pytest.approx(after.mean, rel=1e-3, abs=1e-7)


@pytest.mark.parametrize(("kind", "accumulation"), [("grpo", 1), ("grpo", 2), ("rloo", 2)])
def test_role_gradients_add_up_to_the_trainers_own_norm(
    tmp_path: Path, kind: str, accumulation: int
) -> None:
    """Every step's Gram matrix sums to the square of the norm that the trainer logs."""
    config = {"tier": "full", "gradients": {"store": "full"}}
    trainer, records = watched(
        tmp_path, config=config, gradient_accumulation_steps=accumulation, kind=kind
    )
    logged = [row["grad_norm"] for row in trainer.state.log_history if "grad_norm" in row]
    assert len(records) == len(logged) == 3
    for record, norm in zip(records, logged, strict=True):
        (gram,) = record.gradients
        assert (gram.policy, gram.method) == ("shared", "exact")
        assert gram.labels == tuple(role for role in PAIR if record.stat(role, "entropy"))
        products = np.array(gram.products)
        assert math.sqrt(products.sum()) == pytest.approx(norm, rel=1e-4)
        assert products.diagonal().min() > 0


def test_gradients_are_measured_by_default_and_full_fine_tuning_says_why_not(
    tmp_path: Path,
) -> None:
    _, records = watched(tmp_path / "lora", max_steps=5)
    assert [bool(record.gradients) for record in records] == [True, False, False, False, True]
    assert not any(record.faults for record in records)
    _, records = watched(tmp_path / "full", lora=False, max_steps=1)
    assert not records[0].gradients
    said = open_run(tmp_path / "full" / "run").header.notes["gradients"]
    assert said.startswith("not measured")
    assert "sketch" in said


def test_dropout_is_not_taken_for_an_update(tmp_path: Path) -> None:
    _, records = watched(tmp_path, lora_dropout=0.5, learning_rate=0.0, max_steps=2)
    assert records[1].mean("*", "update.k3") == 0.0


def test_evaluation_is_not_mixed_in(tmp_path: Path) -> None:
    """Evaluation before, between and after the steps: other rows, and none of them in a record."""
    seen = Seen()
    data = tiny_dataset().filter(lambda row: row["role"] == "aggregator")
    trainer, records = watched(
        tmp_path,
        reward=seen,
        train_dataset=tiny_dataset().filter(lambda row: row["role"] == "generator"),
        eval_dataset=data,
        eval_strategy="steps",
        eval_on_start=True,
        eval_steps=1,
        per_device_eval_batch_size=8,
    )
    assert len(seen.calls) > 6
    assert {row["role"] for call in seen.calls for row in call} == set(PAIR)
    trained = [call for call in seen.calls if call[0]["role"] == "generator"]
    for record, call in zip(records, trained, strict=True):
        stat = record.stat("*", "length")
        assert stat is not None
        assert (stat.n, stat.mean) == (8, np.mean([len(row["ids"]) for row in call]))
        assert record.totals["reward"] == pytest.approx(np.mean([row["reward"] for row in call]))
        assert record.stat("aggregator", "length") is None
        assert record.stat("aggregator", "update.k3") is None
        assert not record.faults
    assert {one.role for one in open_run(tmp_path / "run").samples()} == {"generator"}
    for row in trainer.state.log_history:
        assert ("eval_loss" in row) != any(name.startswith("roledrift/") for name in row) or (
            "train_runtime" in row
        )


def evaluated(tmp_path: Path, **changes: Any) -> tuple[Any, list[StepRecord]]:
    trainer, records = watched(
        tmp_path,
        eval_dataset=tiny_dataset().select(range(4)),
        eval_strategy="steps",
        eval_on_start=True,
        eval_steps=1,
        per_device_eval_batch_size=8,
        **changes,
    )
    return trainer, records


def test_an_evaluation_is_the_validation(tmp_path: Path) -> None:
    """The last one comes after the last record and is there all the same."""

    def first(completion_ids: Any, **_: Any) -> list[float]:
        return [float(ids[0] % 2) for ids in completion_ids]

    trainer, records = evaluated(tmp_path, reward=first)
    said = [row["eval_reward"] for row in trainer.state.log_history if "eval_reward" in row]
    assert len(said) == len(records) + 1 > 2
    assert records[0].totals["base_accuracy"] == said[0]
    assert "val_accuracy" not in records[0].totals
    assert [one.totals["val_accuracy"] for one in records[1:-1]] == said[1:-2]
    # Two evaluations meet in the last record: the later one is the run's.
    assert records[-1].totals["val_accuracy"] == said[-1]
    assert records[-1].totals["val_n"] == 4
    assert not any(one.faults for one in records)


def test_a_reward_that_is_no_accuracy_is_not_called_one(tmp_path: Path) -> None:
    """Its mean would be one: a reward between -1 and 2, of which half the rows get either."""

    def balanced(completion_ids: Any, **_: Any) -> list[float]:
        return [2.0 if row % 2 else -1.0 for row in range(len(completion_ids))]

    trainer, records = evaluated(tmp_path, reward=balanced)
    assert trainer.state.log_history[-2]["eval_reward"] == 0.5
    assert not any("accuracy" in name for one in records for name in one.totals)
    assert not any(one.faults for one in records)


def test_an_accuracy_can_be_named(tmp_path: Path) -> None:
    name = "eval_completions/mean_length"
    trainer, records = evaluated(tmp_path, accuracy=name)
    said = [row[name] for row in trainer.state.log_history if name in row]
    assert records[-1].totals["val_accuracy"] == said[-1]
    _, records = evaluated(tmp_path / "other", accuracy="eval_rewards/corect/mean")
    assert records[0].faults == {"evaluation without eval_rewards/corect/mean": 1}


def test_texts_belong_to_their_rows(tmp_path: Path) -> None:
    seen = Seen()
    watched(tmp_path, reward=seen)
    tokenizer = tiny_tokenizer()
    samples = open_run(tmp_path / "run").samples()
    assert {sample.step for sample in samples} == {1, 2, 3}
    for sample in samples:
        row = seen.calls[sample.step - 1][int(sample.episode.split("-")[1])]
        assert sample.role == row["role"]
        assert sample.prompt_text == row["prompt"]
        assert sample.text == tokenizer.decode(row["ids"], skip_special_tokens=True)
        assert (sample.tokens, sample.reward) == (len(row["ids"]), row["reward"])
        assert sample.finish == ("length" if is_cut(row) else "stop")


def test_slots_come_from_their_column(tmp_path: Path) -> None:
    callback = RoleDriftCallback(
        {"generator": 3, "aggregator": 3}, tmp_path / "run", slot_column="copy"
    )
    make_trainer(tmp_path, [callback], per_device_train_batch_size=48, max_steps=1).train()
    record = open_run(tmp_path / "run").steps()[0]
    slots = {f"{role}/{copy}" for role in PAIR for copy in range(3)}
    assert slots & set(record.groups)
    for slot in slots & set(record.groups):
        assert {"length", "entropy", "ppl", "update.chi2", "update.ratio"} <= set(
            record.groups[slot]
        )
    assert set(record.groups) <= {*slots, *PAIR, "*"}
