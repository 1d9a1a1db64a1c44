"""Role gradients in TRL: what is covered is said, and what is compiled is left alone."""

import copy
import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig
from roledrift_trl import RoleDriftCallback
from transformers import TrainerCallback
from trl import GRPOTrainer

from roledrift.gram import total_norm
from roledrift.store.reader import open_run
from tests.integrations.trl_tiny import make_trainer, tiny_model, trace, watched

SKETCH = {"tier": "full", "gradients": {"store": "sketch"}}
IN_PLACE = "logits.div_(" in inspect.getsource(GRPOTrainer._get_per_token_logps_and_entropies)
newer = pytest.mark.skipif(IN_PLACE, reason="this TRL's trained output layers are not measured")


def test_lora_covers_the_norm_that_trl_logs(tmp_path: Path) -> None:
    trainer, steps = watched(tmp_path, model=tiny_model(layers=2), config={"tier": "full"})
    logged = [row["grad_norm"] for row in trainer.state.log_history if "grad_norm" in row]
    assert len(steps) == len(logged) == 3
    for record, norm in zip(steps, logged, strict=True):
        (gram,) = record.gradients
        assert gram.closure < 1e-5
        assert gram.covered == 1
        assert total_norm(gram) == pytest.approx(norm, rel=0.02)


@pytest.mark.skipif(not IN_PLACE, reason="this TRL leaves logits as they are")
def test_a_trl_that_changes_logits_in_place_is_said_to_be_unmeasured(tmp_path: Path) -> None:
    _, steps = watched(tmp_path, lora=False, config=SKETCH)
    assert not any(record.gradients or record.faults for record in steps)
    assert "not measured" in open_run(tmp_path / "run").header.notes["gradients"]


@newer
@pytest.mark.parametrize("tied", [False, True])
def test_the_fused_output_layer_is_named_as_not_covered(tmp_path: Path, tied: bool) -> None:
    """TRL 1.16 computes log-probabilities from ``lm_head.weight``, past the layer."""
    model = tiny_model(layers=2)
    if tied:
        model.config.tie_word_embeddings = True
        model.lm_head.weight = model.get_input_embeddings().weight
    trainer, steps = watched(tmp_path, lora=False, model=model, config=SKETCH)
    logged = [row["grad_norm"] for row in trainer.state.log_history if "grad_norm" in row]
    grams = [one for record in steps for one in record.gradients]
    refused = [name for record in steps for name in record.faults if "less than half" in name]
    assert len(grams) + len(refused) == 3
    if not tied:
        assert all(one.bypassed == ("lm_head",) for one in grams)
        assert all("past their layer: lm_head" in one for one in refused)
    for record, norm in zip(steps, logged, strict=True):
        for gram in record.gradients:
            assert gram.closure < 1e-4
            assert gram.covered < 0.9
            assert total_norm(gram) == pytest.approx(gram.covered * norm, rel=0.35)


@newer
def test_a_trained_copy_of_the_output_layer_is_named_as_not_covered(tmp_path: Path) -> None:
    from peft import get_peft_model

    lora = LoraConfig(r=4, target_modules=["q_proj"], modules_to_save=["lm_head"])
    _, steps = watched(
        tmp_path, lora=False, model=get_peft_model(tiny_model(layers=2), lora), config=SKETCH
    )
    said = [name for record in steps for name in record.faults]
    said += [one for record in steps for gram in record.gradients for one in gram.bypassed]
    assert len(said) >= 3
    assert all("lm_head" in one for one in said)


@pytest.mark.slow
def test_torch_compile_is_left_alone(tmp_path: Path) -> None:
    found: dict[str, Any] = {}
    compiled = {"torch_compile": True, "torch_compile_backend": "eager", "max_steps": 2}
    for name in ("plain", "watched"):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        torch.manual_seed(0)
        if name == "plain":
            trainer = make_trainer(tmp_path / name, [], model=tiny_model(), **compiled)
            trainer.train()
        else:
            model = tiny_model()
            trainer, steps = watched(
                tmp_path / name, config={"tier": "full"}, model=model, **compiled
            )
        found[name] = trace(trainer), torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert found["watched"] == found["plain"]
    assert not any(record.gradients or record.faults for record in steps)
    note = open_run(tmp_path / "watched" / "run").header.notes["gradients"]
    assert note.startswith("not measured: torch_compile=True")


class _Average(TrainerCallback):
    """Keeps a copy of the model, as weight averaging does."""

    def __init__(self) -> None:
        self.copies: list[torch.nn.Module] = []

    def on_step_end(self, *_: Any, model: torch.nn.Module, **__: Any) -> None:
        self.copies.append(copy.deepcopy(model))

    def on_substep_end(self, *_: Any, model: torch.nn.Module, **__: Any) -> None:
        self.copies.append(copy.deepcopy(model))


def test_the_model_may_be_copied_at_any_time(tmp_path: Path) -> None:
    """In a generating trainer; for any other see test_trl_forward."""
    average = _Average()
    changes = {"gradient_accumulation_steps": 2, "per_device_train_batch_size": 4}
    plain = make_trainer(tmp_path / "plain", [_Average()], **changes)
    plain.train()
    trainer = make_trainer(
        tmp_path / "watched",
        [
            RoleDriftCallback(
                {"generator": 1, "aggregator": 1}, tmp_path / "run", config={"tier": "full"}
            ),
            average,
        ],
        **changes,
    )
    trainer.train()
    assert len(average.copies) == 6
    assert trace(trainer) == trace(plain)
    assert all(len(one.gradients) == 1 for one in open_run(tmp_path / "run").steps())
