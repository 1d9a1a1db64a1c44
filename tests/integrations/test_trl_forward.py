"""The callback on a plain `transformers.Trainer`: roles in a column, labels, no rewards."""

import copy
import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from roledrift_trl import RoleDriftCallback
from transformers import (
    Qwen3Config,
    Qwen3ForCausalLM,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from roledrift import replay
from roledrift.errors import ConfigError
from roledrift.records import StepRecord
from roledrift.store.reader import open_run
from tests.integrations.trl_tiny import ON_GPU

PAIR = {"generator": 1, "aggregator": 1}
torch.set_num_threads(1)


def tiny_model(layers: int = 2) -> Any:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=16,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
    )
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        model.lm_head.weight.mul_(8)
    return model


def rows(with_role: bool = True) -> list[dict[str, Any]]:
    """Eight tokens each; the generator's last five bear loss, the aggregator's last two."""
    random = np.random.default_rng(0)
    found = []
    for number in range(24):
        ids = random.integers(0, 16, 8).tolist()
        role = number % 3 == 0
        labels = [-100] * (6 if role else 3) + ids[6 if role else 3 :]
        row = {"input_ids": ids, "attention_mask": [1] * 8, "labels": labels}
        found.append({**row, "role": int(role)} if with_role else row)
    return found


class Weighted(Trainer):
    """A loss of one's own that reads the roles too."""

    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        weight_B = 1.0 + inputs["role"].float()
        logits = model(input_ids=inputs["input_ids"]).logits
        loss_BT = torch.nn.functional.cross_entropy(
            logits[:, :-1].transpose(1, 2), inputs["labels"][:, 1:], reduction="none"
        )
        return (loss_BT.sum(1) * weight_B).mean()


def train(out: Path, callbacks: list[Any], **changes: Any) -> Trainer:
    model, kind = tiny_model(changes.pop("layers", 2)), changes.pop("kind", Trainer)
    if changes.pop("lora", True):
        torch.manual_seed(1)
        model = get_peft_model(model, LoraConfig(r=4, target_modules="all-linear"))
    settings = {
        "output_dir": str(out / "trainer"),
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "max_steps": 3,
        "logging_steps": 1,
        "learning_rate": 1e-2,
        "use_cpu": not ON_GPU,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "remove_unused_columns": False,
    }
    data = Dataset.from_list(changes.pop("rows", None) or rows())
    trainer = kind(
        model=model,
        args=TrainingArguments(**{**settings, **changes}),
        train_dataset=data,
        eval_dataset=data.select(range(4)),
        callbacks=callbacks,
    )
    trainer.train()
    return trainer


def watched(out: Path, **changes: Any) -> tuple[Trainer, list[StepRecord]]:
    config = {"gradients": {"every": 1, "store": "full"}}
    callback = RoleDriftCallback(PAIR, out / "run", config=config)
    return train(out, [callback], **changes), open_run(out / "run").steps()


def weights(trainer: Trainer) -> str:
    digest = hashlib.sha256(torch.get_rng_state().numpy().tobytes())
    for _, value in sorted(trainer.model.state_dict().items()):
        digest.update(value.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lora": False},
        {"eval_strategy": "steps", "eval_steps": 1},
        {"gradient_checkpointing": True},
        {"label_smoothing_factor": 0.1},
    ],
)
def test_the_training_is_that_of_a_dataset_without_roles(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    alone = train(tmp_path / "alone", [], rows=rows(with_role=False), **changes)
    trainer, records = watched(tmp_path, **changes)
    assert weights(trainer) == weights(alone)
    assert [one.step for one in records] == [1, 2, 3]
    assert not any(one.faults for one in records)
    assert "compute_loss" not in vars(trainer)


def test_a_loss_of_ones_own_and_the_gradients_of_each_role(tmp_path: Path) -> None:
    trainer, records = watched(tmp_path, kind=Weighted, max_steps=3)
    # Three steps of eight rows are the whole dataset, in an order of the trainer's.
    for role, length, count in (("generator", 5.0, 16), ("aggregator", 2.0, 8)):
        stats = [one.stat(role, "length") for one in records]
        assert sum(one.n for one in stats if one) == count
        assert {one.mean for one in stats if one} == {length}
    for one in records:
        assert one.mean("*", "reward") is None
        (gram,) = one.gradients
        assert set(gram.labels) == set(PAIR)
    logged = [row["grad_norm"] for row in trainer.state.log_history if "grad_norm" in row]
    for one, norm in zip(records, logged, strict=True):
        products = np.array(one.gradients[0].products)
        assert math.sqrt(products.sum()) == pytest.approx(norm, rel=1e-4)
    assert trainer.state.log_history[0]["roledrift/generator/length"] == 5.0


def test_perplexity_and_entropy_of_one_step_over_all_rows(tmp_path: Path) -> None:
    _, records = watched(
        tmp_path, per_device_train_batch_size=24, gradient_accumulation_steps=1, max_steps=1
    )
    model = tiny_model().eval()
    for index, role in enumerate(PAIR):
        ppl, entropy = [], []
        for row in rows():
            if row["role"] != index:
                continue
            logp = torch.log_softmax(model(torch.tensor([row["input_ids"]])).logits[0], -1)
            at = [i for i, label in enumerate(row["labels"]) if label != -100]
            nll = [-logp[i - 1, row["labels"][i]].item() for i in at]
            ppl.append(math.exp(sum(nll) / len(nll)))
            entropy += [-(logp[i - 1].exp() * logp[i - 1]).sum().item() for i in at]
        assert records[0].mean(role, "ppl") == pytest.approx(np.mean(ppl), rel=1e-4)
        assert records[0].mean(role, "entropy") == pytest.approx(np.mean(entropy), rel=1e-4)


def test_what_cannot_be_had_is_no_verdict(tmp_path: Path) -> None:
    _, records = watched(tmp_path)
    header = open_run(tmp_path / "run").header
    assert header.host == "transformers.Trainer"
    told = {
        one.detector: one.state
        for one in replay(records, header.workflow).verdicts
        if one.detector in ("accuracy_cliff", "echo_trap", "sp_role_capture")
    }
    assert set(told.values()) == {"no verdict"}
    assert {"reward_N", "advantage_N"} <= set(records[0].missing)


def test_roles_may_be_names_if_the_collator_passes_them(tmp_path: Path) -> None:
    def collate(features: list[dict[str, Any]]) -> dict[str, Any]:
        batch = {
            name: torch.tensor([row[name] for row in features])
            for name in ("input_ids", "attention_mask", "labels")
        }
        return {**batch, "role": ["nobody" if row["role"] else "generator" for row in features]}

    class Named(Trainer):
        def __init__(self, **parts: Any) -> None:
            super().__init__(data_collator=collate, **parts)

    _, records = watched(tmp_path, kind=Named)
    assert records[0].mean("generator", "length") == 5.0
    assert any("unknown role" in one.faults for one in records)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rows": rows(with_role=False)}, "no column 'role'; its columns are .*'labels'"),
        ({"remove_unused_columns": True}, "remove_unused_columns=False"),
    ],
)
def test_what_is_wrong_is_said_before_training(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        watched(tmp_path, **changes)
    assert not (tmp_path / "run").exists()


class Copying(TrainerCallback):
    """Copies and saves the model in the middle of a step, as weight averaging may do."""

    copies = 0

    def on_substep_end(self, args: Any, *_: Any, model: Any, **__: Any) -> None:
        made = copy.deepcopy(model)
        torch.save(model, Path(args.output_dir) / "whole.pt")
        made(input_ids=torch.tensor([[1, 2, 3]], device=made.device)).logits.sum().backward()
        self.copies += 1


def test_the_model_may_be_copied_and_saved_in_the_middle_of_a_step(tmp_path: Path) -> None:
    """It ended the training: the model's hooks held the monitor, and that an open file."""
    copying = Copying()
    callback = RoleDriftCallback(PAIR, tmp_path / "run", config={"gradients": {"every": 1}})
    trainer = train(tmp_path / "watched", [callback, copying])
    assert copying.copies == 3
    assert weights(trainer) == weights(train(tmp_path / "plain", [Copying()]))
    for record in open_run(tmp_path / "run").steps():
        assert record.faults == {}
        assert record.gradients[0].covered == 1


def test_a_compiled_model_is_measured_by_its_outputs(tmp_path: Path) -> None:
    compiled = {"torch_compile": True, "torch_compile_backend": "aot_eager"}
    found = {}
    for name, callbacks in (
        ("plain", []),
        ("watched", [RoleDriftCallback(PAIR, tmp_path / "run")]),
    ):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        data = rows(with_role=name == "watched")
        trainer = train(tmp_path / name, callbacks, rows=data, layers=1, **compiled)
        found[name] = weights(trainer), torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert found["watched"] == found["plain"]
    for record in open_run(tmp_path / "run").steps():
        assert record.faults == {}
        assert record.stat("generator", "ppl") is not None
