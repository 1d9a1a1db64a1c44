"""Which rows are scored again, and that the model is left as it was."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from roledrift_trl import batch, rescoring
from torch import nn

from roledrift.config import from_mapping


def rows(
    roles: tuple[int, ...], number: int = 0, start: int = 0, slots: tuple[int, ...] | None = None
) -> batch.Rows:
    marks = torch.arange(start, start + len(roles))[:, None]
    made = batch.Generation(number, 0, roles, None, (0,) * len(roles))
    spans = made.spans(range(len(roles)), 1)
    return batch.Rows(made, spans, slots, marks, marks, marks, marks.float())


def test_rows_to_score_again_are_some_of_each_role() -> None:
    parts = [rows((0, 0, 0, 1)), rows((0, 1, -1, 0), start=4)]
    (chosen,) = rescoring.choose(parts, per_role=2, roles=2)
    assert (chosen.roles, chosen.slots) == ((0, 0, 1, 1), None)
    assert chosen.ids_BL.flatten().tolist() == [0, 1, 3, 5]
    assert chosen.logp_BC.flatten().tolist() == [0.0, 1.0, 3.0, 5.0]


def test_as_many_rows_are_scored_again_whatever_the_mixture_of_roles() -> None:
    sizes = {
        len(rescoring.choose([rows(roles)], per_role=2, roles=2)[0].roles)
        for roles in ((0, 0, 0, 0, 0), (0, 1, 1, 1, 1), (-1, -1, -1, -1, 0), (0, 0, 0, 1, 1))
    }
    assert sizes == {4}


def test_rows_of_different_generations_are_kept_apart() -> None:
    parts = [rows((0, 1)), rows((0, 1), number=1), rows((1, 0), number=1, start=2)]
    first, second = rescoring.choose(parts, per_role=3, roles=2)
    assert (first.roles, second.roles) == ((0, 1), (0, 1, 1, 0))
    assert rescoring.choose([], per_role=3, roles=2) == []


def test_every_module_gets_its_own_mode_back() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(2)).train()
    model[1].eval()
    with rescoring.evaluating(model):
        assert not any(module.training for module in model.modules())
    assert [module.training for module in model.modules()] == [True, True, False]


def test_dropout_is_found_in_layers_and_in_the_configuration() -> None:
    quiet = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0))
    assert not rescoring.is_noisy(quiet)
    assert rescoring.is_noisy(nn.Sequential(nn.Dropout(0.1)))
    quiet.config = SimpleNamespace(attention_dropout=0.0, hidden_size=2.0)  # type: ignore[assignment]
    assert not rescoring.is_noisy(quiet)
    quiet.config = SimpleNamespace(attention_dropout=0.1)  # type: ignore[assignment]
    assert rescoring.is_noisy(quiet)


def test_slots_go_with_their_rows() -> None:
    parts = [rows((0, 0, 1), slots=(2, 1, 0)), rows((1, 0), start=3, slots=(0, 0))]
    (chosen,) = rescoring.choose(parts, per_role=2, roles=2)
    assert (chosen.roles, chosen.slots) == ((0, 0, 1, 1), (2, 1, 0, 0))


def test_without_its_adapter_a_model_is_its_base_and_comes_back_as_it_was() -> None:
    torch.manual_seed(0)
    model = get_peft_model(nn.Sequential(nn.Linear(3, 3)), LoraConfig(target_modules=["0"]))
    x = torch.ones(1, 3)
    base = model(x)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            nn.init.ones_(weight)
        weight.requires_grad_("lora_A" in name)  # half of the adapter is frozen by the user
    adapted = model(x)
    assert not torch.equal(adapted, base)
    trained = [weight.requires_grad for weight in model.parameters()]
    with rescoring.adapter_off(model):
        assert torch.equal(model(x), base)
    assert torch.equal(model(x), adapted)
    assert [weight.requires_grad for weight in model.parameters()] == trained


@pytest.mark.parametrize(
    ("facts", "has"),
    [
        ({}, True),
        ({"beta": 0.1}, False),
        ({"is_fsdp_enabled": True}, False),
        ({"is_deepspeed_enabled": True}, False),
        ({"model": nn.Linear(1, 1)}, False),
    ],
)
def test_when_the_reference_is_an_adapter_away(facts: dict[str, Any], has: bool) -> None:
    model = get_peft_model(nn.Sequential(nn.Linear(3, 3)), LoraConfig(target_modules=["0"]))
    known = {"model": model, "beta": 0.0, "is_fsdp_enabled": False, "is_deepspeed_enabled": False}
    assert rescoring.has_reference(SimpleNamespace(**{**known, **facts})) is has


@pytest.mark.parametrize(
    ("config", "steps"),
    [
        ({}, [10, 20]),
        ({"rescore": {"reference_every": 0}}, []),
        ({"rescore": {"reference_every": 7}}, [7, 14]),
        ({"rescore": {"reference_every": 4, "every": 2}}, [8, 16]),
        ({"rescore": {"every": 6}, "tier": "full"}, [6, 12, 18]),
    ],
)
def test_when_the_reference_is_asked(config: dict[str, Any], steps: list[int]) -> None:
    built = from_mapping(config)
    assert [step for step in range(1, 21) if rescoring.wants_reference(built, step)] == steps
