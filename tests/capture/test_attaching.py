"""What the configuration and the host say, before anything in the model is touched."""

from __future__ import annotations

import pytest
from gradient_models import VOTING, tiny_model

from roledrift.capture.attaching import attach_gradients
from roledrift.config import Config, GradientsConfig


@pytest.mark.parametrize(
    ("config", "rhythm"),
    [(Config(), [1, 0, 0, 0, 1]), (Config(tier="full"), [1, 1, 1, 1, 1])],
)
def test_the_tier_sets_the_rhythm(config: Config, rhythm: list[int]) -> None:
    probe, said = attach_gradients(tiny_model(), VOTING, config)
    assert said.startswith("role gradients of 28 weights")
    measured = []
    for _ in rhythm:
        measured.append(int(probe.measuring))
        probe.drain_gradients()
    assert measured == rhythm


@pytest.mark.parametrize(
    "config", [Config(tier="economy"), Config(gradients=GradientsConfig(every=0))]
)
def test_it_may_be_switched_off(config: Config) -> None:
    assert attach_gradients(tiny_model(), VOTING, config)[0] is None


def test_a_host_that_compiles_is_left_alone() -> None:
    probe, said = attach_gradients(tiny_model(), VOTING, Config(), compiles="torch_compile=True")
    assert probe is None
    assert said.startswith("not measured: torch_compile=True compiles the model")


def test_a_model_that_cannot_be_measured_is_no_error() -> None:
    probe, said = attach_gradients(tiny_model().base_model.model.lm_head, VOTING, Config())
    assert probe is None
    assert "store='sketch'" in said


@pytest.mark.parametrize("name", ["_C._current_graph_task_id", "autograd._get_sequence_nr"])
def test_a_torch_without_its_private_functions_measures_no_gradients(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delattr(f"torch.{name}")
    probe, said = attach_gradients(tiny_model(), VOTING, Config())
    assert probe is None
    assert said.startswith("not measured, but all other statistics are: torch ")
