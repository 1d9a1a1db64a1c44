"""The TRL callback on real GRPO trainings of a tiny model."""

import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from peft import LoraConfig
from roledrift_trl import RoleDriftCallback, RoleDriftMixin
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, TrainerCallback
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer, SFTConfig, SFTTrainer

from roledrift.capture.tokens import TokenCapture
from roledrift.errors import AttachError, ConfigError, StoreError
from roledrift.records import Checkpoint, StepRecord
from roledrift.store.reader import open_run

ROOT = Path(__file__).parents[2]
WORDS = ["<pad>", "<eos>", "<unk>", "gen", "agg", "a", "b", "c"]
PAIR = {"generator": 1, "aggregator": 1}
WRAPPED = (
    "_generate_and_score_completions",
    "_calculate_rewards",
    "_compute_loss",
    "_get_per_token_logps_and_entropies",
    "log",
)
TRAINERS: dict[str, tuple[Any, Any]] = {
    "grpo": (GRPOTrainer, GRPOConfig),
    "rloo": (RLOOTrainer, RLOOConfig),
}
torch.set_num_threads(1)


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


def tiny_model() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        pad_token_id=0,
        eos_token_id=1,
        tie_word_embeddings=False,
    )
    # Logits of some size, so that temperature matters and updates are visible.
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        model.lm_head.weight.mul_(8)
    return model


def tiny_dataset() -> Dataset:
    return Dataset.from_list(
        [
            {"prompt": f"{word} {x} {y}", "role": role, "copy": "abc".index(x)}
            for x in "abc"
            for y in "abc"
            for word, role in (("gen", "generator"), ("agg", "aggregator"))
        ]
    )


class Seen:
    """A reward function that remembers what it was given."""

    def __init__(self) -> None:
        self.calls: list[list[dict[str, Any]]] = []

    __name__ = "seen"

    def __call__(self, prompts: Any, completion_ids: Any, role: Any, **_: Any) -> list[float]:
        rewards = [float(sum(i % 3 == 0 for i in ids)) for ids in completion_ids]
        self.calls.append(
            [
                {"prompt": p, "ids": list(i), "role": r, "reward": w}
                for p, i, r, w in zip(prompts, completion_ids, role, rewards, strict=True)
            ]
        )
        return rewards


def make_trainer(out: Path, callbacks: list[Any], **changes: Any) -> GRPOTrainer:
    kind = changes.pop("kind", "grpo")
    parts: dict[str, Any] = {
        "model": changes.pop("model", None) or tiny_model(),
        "train_dataset": changes.pop("train_dataset", None) or tiny_dataset(),
        "reward_funcs": changes.pop("reward", None) or Seen(),
        "eval_dataset": changes.pop("eval_dataset", None),
    }
    if "rollout_func" in changes:
        parts["rollout_func"] = changes.pop("rollout_func")
    dropout = changes.pop("lora_dropout", 0.0)
    if changes.pop("lora", True):
        parts["peft_config"] = LoraConfig(
            r=4, target_modules="all-linear", lora_dropout=dropout, lora_alpha=16
        )
    settings: dict[str, Any] = {
        "output_dir": str(out / "trainer"),
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 8,
        "max_steps": 3,
        "logging_steps": 1,
        "learning_rate": 3e-3,
        "lr_scheduler_type": "constant",
        "use_cpu": True,
        "bf16": False,
        "report_to": "none",
        "gradient_checkpointing": False,
        "save_strategy": "no",
        "disable_tqdm": True,
        **changes,
    }
    return TRAINERS[kind][0](
        args=TRAINERS[kind][1](**settings),
        processing_class=tiny_tokenizer(),
        callbacks=callbacks,
        **parts,
    )


def watched(out: Path, **changes: Any) -> tuple[GRPOTrainer, list[StepRecord]]:
    callback = RoleDriftCallback(PAIR, out / "run", config=changes.pop("config", None))
    trainer = make_trainer(out, [callback, *changes.pop("callbacks", [])], **changes)
    trainer.train()
    return trainer, open_run(out / "run").steps()


def trace(trainer: GRPOTrainer) -> str:
    """Hash of losses, gradient norms, final weights and the state of the random numbers."""
    kept = ("loss", "grad_norm", "entropy", "reward", "eval_loss", "kl", "train_loss")
    rows = [
        [(name, repr(row[name])) for name in kept if name in row]
        for row in trainer.state.log_history
    ]
    digest = hashlib.sha256(json.dumps(rows).encode())
    for name, value in sorted(trainer.model.state_dict().items()):
        digest.update(name.encode() + value.detach().float().numpy().tobytes())
    digest.update(torch.get_rng_state().numpy().tobytes())
    return digest.hexdigest()


VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulation": {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 4},
    "two iterations": {"num_iterations": 2, "max_steps": 4},
    "reference": {"beta": 0.1},
    "dropout and evaluation": {
        "lora_dropout": 0.3,
        "eval_strategy": "steps",
        "eval_steps": 1,
        "per_device_eval_batch_size": 8,
        "mask_truncated_completions": True,
        "max_completion_length": 32,
    },
    "checkpointing, late logging": {"gradient_checkpointing": True, "logging_steps": 2},
    "RLOO": {"kind": "rloo", "beta": 0.0},
    "RLOO with reference, accumulation": {
        "kind": "rloo",
        "beta": 0.1,
        "gradient_accumulation_steps": 2,
        "per_device_train_batch_size": 4,
        "num_iterations": 2,
        "max_steps": 4,
    },
    "adapter off": {"config": {"tier": "full"}},
    "adapter off, dropout": {
        "config": {"rescore": {"reference_every": 2}},
        "lora_dropout": 0.3,
        "num_iterations": 2,
        "gradient_accumulation_steps": 2,
        "per_device_train_batch_size": 4,
        "max_steps": 4,
    },
}


EVERY_REFERENCE = {
    "adapter off": 1,
    "adapter off, dropout": 2,
    "reference": 1,
    "RLOO with reference, accumulation": 1,
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_training_is_the_same_to_the_last_bit(tmp_path: Path, variant: str) -> None:
    changes = dict(VARIANTS[variant])
    if "eval_strategy" in changes:
        changes = {**changes, "eval_dataset": tiny_dataset().select(range(2))}
    config = {"config": changes.pop("config")} if "config" in changes else {}
    alone = make_trainer(tmp_path / "alone", [], **changes)
    alone.train()
    trainer, records = watched(tmp_path, **config, **changes)
    assert trace(trainer) == trace(alone)
    assert [record.step for record in records] == list(range(1, trainer.state.global_step + 1))
    assert all(not record.faults for record in records)
    assert all(record.mean("*", "update.k3") > 0 for record in records)
    assert not set(WRAPPED) & set(vars(trainer))
    scored = [record.mean("*", "reference.k3") is not None for record in records]
    every = EVERY_REFERENCE.get(variant, 10)
    assert scored == [record.step % every == 0 for record in records]


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


def token_logps(model: Any, prompt: list[int], ids: list[int], temperature: float) -> torch.Tensor:
    with torch.no_grad():
        logits = model(torch.tensor([prompt + ids])).logits[0]
    logp = torch.log_softmax(logits[len(prompt) - 1 : -1] / temperature, dim=-1)
    return logp[torch.arange(len(ids)), torch.tensor(ids)]


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


@pytest.mark.parametrize("kind", TRAINERS)
def test_the_update_is_what_the_next_pass_over_the_rows_sees(tmp_path: Path, kind: str) -> None:
    _, records = watched(
        tmp_path,
        num_iterations=2,
        max_steps=4,
        config={"rescore": {"rows_per_role": 8}},
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


def test_length_inflation_stops_the_training(tmp_path: Path) -> None:
    def pays_length(completion_ids: Any, role: Any, **_: Any) -> list[float]:
        signs = [1.0 if name == "aggregator" else -1.0 for name in role]
        return [sign * len(ids) for sign, ids in zip(signs, completion_ids, strict=True)]

    model = tiny_model()
    with torch.no_grad():
        model.lm_head.weight.div_(8)
    trainer, records = watched(
        tmp_path,
        model=model,
        lora=False,
        reward=pays_length,
        per_device_train_batch_size=32,
        num_generations=8,
        max_completion_length=24,
        max_steps=60,
        learning_rate=1e-2,
        config={
            "stop_on": ["length_inflation"],
            "baseline": {"window": 4},
            "detectors": {"length_inflation": {"drift_at": 16.0}},
        },
    )
    alerts = open_run(tmp_path / "run").alerts()
    stop = next(alert for alert in alerts if alert.stops)
    assert (stop.detector, stop.role) == ("length_inflation", "aggregator")
    assert trainer.state.global_step == stop.step == records[-1].step < 60


@pytest.mark.parametrize(
    ("dataset", "changes", "says"),
    [
        (tiny_dataset().remove_columns("role"), {}, "no column 'role'; its columns are .*'prompt'"),
        (
            tiny_dataset().map(
                lambda row: {"role": row["role"].replace("aggregator", "agregator")}
            ),
            {},
            "Did you mean 'aggregator'",
        ),
        (tiny_dataset().map(lambda _, i: {"role": None}, with_indices=True), {}, "holds None"),
        (tiny_dataset(), {"remove_unused_columns": True}, "remove_unused_columns=False"),
    ],
)
def test_what_is_wrong_with_the_roles_is_said_before_training(
    tmp_path: Path, dataset: Dataset, changes: dict[str, Any], says: str
) -> None:
    def any_reward(completions: Any, **_: Any) -> list[float]:
        return [0.0] * len(completions)

    with pytest.raises(ConfigError, match=says):
        watched(tmp_path, train_dataset=dataset, reward=any_reward, **changes)
    assert not (tmp_path / "run").exists()


def test_a_wrong_workflow_is_said_at_once() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'voting'"):
        RoleDriftCallback("votin")


def test_a_trainer_that_loses_the_roles_is_refused(tmp_path: Path) -> None:
    trainer = SFTTrainer(
        model=tiny_model(),
        args=SFTConfig(
            str(tmp_path / "trainer"), use_cpu=True, bf16=False, max_steps=1, report_to="none"
        ),
        train_dataset=Dataset.from_list([{"text": "a b c", "role": "generator"}] * 8),
        processing_class=tiny_tokenizer(),
        callbacks=[RoleDriftCallback(PAIR, tmp_path / "run")],
    )
    with pytest.raises(ConfigError, match="remove_unused_columns=False"):
        trainer.train()


def test_what_is_no_trainer_is_refused(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, [])
    callback = RoleDriftCallback(PAIR, tmp_path / "run", trainer=object())
    with pytest.raises(AttachError, match=r"object has no .*_compute_loss.*GRPOTrainer"):
        callback.on_train_begin(trainer.args, trainer.state, trainer.control)


class MixedGRPO(RoleDriftMixin, GRPOTrainer):
    pass


class MixedRLOO(RoleDriftMixin, RLOOTrainer):
    pass


@pytest.mark.parametrize("kind", ["grpo", "rloo"])
def test_the_mixin_measures_the_same_and_wraps_nothing(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NothingWrapped(TrainerCallback):
        seen = False

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            NothingWrapped.seen = True
            assert not set(WRAPPED) & set(vars(mixed))

    changes: dict[str, Any] = {"kind": kind, "num_iterations": 2, "max_steps": 4}
    plain, records = watched(tmp_path, **changes)
    monkeypatch.setitem(
        TRAINERS, kind, ({"grpo": MixedGRPO, "rloo": MixedRLOO}[kind], TRAINERS[kind][1])
    )
    callback = RoleDriftCallback(PAIR, tmp_path / "mixed" / "run")
    mixed = make_trainer(tmp_path / "mixed", [callback, NothingWrapped()], **changes)
    mixed.train()
    assert NothingWrapped.seen
    assert trace(mixed) == trace(plain)
    assert not mixed.roledrift_rounds
    again = open_run(tmp_path / "mixed" / "run").steps()
    assert [one.groups for one in again] == [one.groups for one in records]
    assert [one.gradients for one in again] == [one.gradients for one in records]
    assert not any(one.faults for one in again)
    told = mixed.state.log_history[0]
    assert told["roledrift/generator/length"] == again[0].mean("generator", "length")


def test_the_mixin_without_a_callback_does_nothing(tmp_path: Path) -> None:
    TRAINERS["mixed"] = (MixedGRPO, GRPOConfig)
    alone = make_trainer(tmp_path / "alone", [], max_steps=2)
    alone.train()
    mixed = make_trainer(tmp_path / "mixed", [], max_steps=2, kind="mixed")
    mixed.train()
    assert trace(mixed) == trace(alone)


def test_without_a_trainer_it_says_how_to_name_it(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, [])
    callback = RoleDriftCallback(PAIR, tmp_path / "run")
    with pytest.raises(AttachError, match=r"callback\.trainer = trainer"):
        callback.on_train_begin(trainer.args, trainer.state, trainer.control)
    callback.trainer = trainer
    callback.on_train_begin(trainer.args, trainer.state, trainer.control)
    assert set(WRAPPED) <= set(vars(trainer))
    callback.detach()
    assert not set(WRAPPED) & set(vars(trainer))


@pytest.mark.parametrize(
    "broken",
    [
        *("batch.rollout", "batch.update", "batch.trained"),
        *("rescoring.choose", "rescoring.score_again", "rescoring.adapter_off"),
    ],
)
def test_what_fails_in_flight_is_counted_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    alone = make_trainer(tmp_path / "alone", [])
    alone.train()

    def fails(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(f"roledrift_trl.{broken}", fails)
    trainer, records = watched(tmp_path, config={"tier": "full"})
    assert trace(trainer) == trace(alone)
    assert len(records) == 3
    for record in records:
        assert [name.split(": ")[1] for name in record.faults] == ["ZeroDivisionError"]


def test_a_failing_drain_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: TokenCapture) -> None:
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(TokenCapture, "drain", fails)
    _, records = watched(tmp_path)
    assert [dict(record.faults) for record in records] == [
        {"drain TokenCapture: ZeroDivisionError": 1}
    ] * 3


def test_evaluation_is_not_mixed_in(tmp_path: Path) -> None:
    seen = Seen()
    _, records = watched(
        tmp_path,
        reward=seen,
        eval_dataset=tiny_dataset(),
        eval_strategy="steps",
        eval_steps=1,
        per_device_eval_batch_size=8,
    )
    assert len(seen.calls) > 3
    for record in records:
        stat = record.stat("*", "length")
        assert stat is not None
        assert stat.n == 8


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


def test_a_resumed_training_continues_its_run(tmp_path: Path) -> None:
    watched(tmp_path, max_steps=2, save_strategy="steps", save_steps=1)
    callback = RoleDriftCallback(PAIR, tmp_path / "run")
    trainer = make_trainer(tmp_path, [callback], max_steps=4, save_strategy="steps", save_steps=1)
    trainer.train(resume_from_checkpoint=str(tmp_path / "trainer" / "checkpoint-1"))
    run = open_run(tmp_path / "run")
    assert [record.step for record in run.steps()] == [1, 2, 3, 4]
    assert run.seams == (2,)
    assert run.state == "finished"
    kept = run.steps()[-1].checkpoints
    folders = [tmp_path / "trainer" / f"checkpoint-{step}" for step in (1, 2, 3)]
    assert kept == tuple(Checkpoint(i, str(one)) for i, one in enumerate(folders, start=1))
    states = json.loads((tmp_path / "trainer/checkpoint-4/trainer_state.json").read_text())
    assert "RoleDriftCallback" not in states["stateful_callbacks"]


def test_an_old_run_is_not_overwritten(tmp_path: Path) -> None:
    watched(tmp_path, max_steps=1)
    with pytest.raises(StoreError):
        watched(tmp_path, max_steps=1)


def test_the_run_directory_and_header_have_defaults(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, [RoleDriftCallback(PAIR, task="sums")], max_steps=1, seed=7)
    trainer.train()
    header = open_run(tmp_path / "trainer" / "roledrift").header
    assert (header.host, header.task, header.seed) == ("trl.GRPOTrainer", "sums", 7)
    assert header.workflow.routing == "shared"


def test_a_wrap_of_someone_else_stays(tmp_path: Path) -> None:
    class Wrapper(TrainerCallback):
        calls = 0

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            inner = trainer._compute_loss

            def outer(*args: Any, **kwargs: Any) -> Any:
                Wrapper.calls += 1
                return inner(*args, **kwargs)

            trainer._compute_loss = outer

    trainer = make_trainer(
        tmp_path, [RoleDriftCallback(PAIR, tmp_path / "run"), Wrapper()], max_steps=2
    )
    trainer.train()
    assert Wrapper.calls == 2
    assert "_compute_loss" in vars(trainer)
    assert all(not record.faults for record in open_run(tmp_path / "run").steps())


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}


def test_the_example_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples/trl_grpo_roles.py", "--out", tmp_path, "--steps", "3"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    run = open_run(tmp_path / "roledrift")
    assert f"roledrift report {tmp_path / 'roledrift'}" in done.stdout
    assert [record.step for record in run.steps()] == [1, 2, 3]
    assert not any(record.faults for record in run.steps())
    assert {"generator", "aggregator"} <= set(run.steps()[0].groups)


TWO_RANKS = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_trl import make_trainer
from roledrift_trl import RoleDriftCallback, RoleDriftMixin
out = Path({out!r})
config = {{"rescore": {{"rows_per_role": 8}}}}
callback = RoleDriftCallback({{"generator": 1, "aggregator": 1}}, out / "run", config=config)
make_trainer(out, [callback], ddp_backend="gloo").train()
"""


@pytest.mark.slow
def test_two_processes_write_one_run(tmp_path: Path) -> None:
    script = tmp_path / "two_ranks.py"
    script.write_text(TWO_RANKS.format(tests=str(Path(__file__).parent), out=str(tmp_path)))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", str(script)]
    port = f"--master_port={20000 + os.getpid() % 20000}"
    done = subprocess.run(
        [*command[:3], port, *command[3:]],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    run = open_run(tmp_path / "run")
    assert len(run.segments) == 1
    assert [record.step for record in run.steps()] == [1, 2, 3]
    for record in run.steps():
        assert not record.faults
        stats = [record.stat("*", name) for name in ("length", "reward", "update.ppl_ratio")]
        assert [stat and stat.n for stat in stats] == [16, 16, 16]
        groups = record.stat("*", "zero_variance")
        assert groups is not None
        assert groups.n == 4
        assert record.totals["reward"] == pytest.approx(record.mean("*", "reward"))
