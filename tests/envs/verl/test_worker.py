"""verl's own worker, engine, loss and optimizer on a tiny model, on the CPU."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed.fsdp._init_utils as fsdp1
from omegaconf import DictConfig
from roledrift_verl.wire import FILLING, ORDER, PROBLEM, REPORT, ROLE, SLOT, Order, Report
from roledrift_verl.worker import _not_one_piece
from verl.utils import tensordict_utils as tu
from verl.workers.utils.padding import response_from_nested

from roledrift import VOTING
from roledrift.config import from_mapping
from tests.envs.verl.actor import actor_config, batch_of, columns, jagged, tiny_model, worker_of

ROWS = 8
ROLES = torch.tensor([0, 0, 0, 1] * 2)
CONFIG = from_mapping({"gradients": {"every": 1, "store": "full"}})
ENGINES = [("fsdp2", True), ("fsdp2", False), ("fsdp", True)]


@pytest.fixture(scope="module", autouse=True)
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A process group of one, as verl's Ray workers make theirs."""
    place = tmp_path_factory.mktemp("group") / "store"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}.items():
            patch.setenv(name, value)
        patch.setenv("MASTER_PORT", "29555")
        # verl's FSDP1 spreads rank 0's weights, which torch refuses for weights on the CPU.
        patch.setattr(fsdp1, "_check_module_states_for_sync_module_states", lambda _: None)
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{place}", rank=0, world_size=1
        )
        yield
        torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLEDRIFT_STRICT", "1")


def order(**settings: Any) -> Order:
    known = {"slots": True, "problems": True, "clip": (0.2, 0.2), "temperature": 0.7}
    return Order(1, VOTING, CONFIG, **(known | settings))


def watched(data: dict[str, Any]) -> dict[str, Any]:
    return data | {
        ROLE: ROLES,
        SLOT: torch.tensor([0, 1, 2, 0] * 2),
        PROBLEM: torch.tensor([0] * 4 + [1] * 4),
    }


def training_rows(worker: Any) -> dict[str, Any]:
    """Rows with their log-probabilities and advantages, as verl's trainer would hand them over."""
    data = columns(ROWS)
    out = worker.infer_batch(batch_of(data, compute_loss=False))
    old = response_from_nested(out["log_probs"], data["response_mask"])
    advantages = [
        torch.full_like(one, row % 3 - 1.0, dtype=torch.float32)
        for row, one in enumerate(data["responses"].unbind())
    ]
    return data | {"old_log_probs": old, "advantages": jagged(advantages)}


def train(worker: Any, data: dict[str, Any], *, mini: int = ROWS, **settings: Any) -> Any:
    its = {"mini_batch_size": mini, "epochs": 1, "seed": 1, "global_batch_size": mini}
    its |= {"dataloader_kwargs": {"shuffle": False}}
    return tu.get(worker.train_mini_batch(batch_of(data, **its, **settings)), "metrics")


def weights(worker: Any) -> list[torch.Tensor]:
    return [one.detach().clone() for one in worker.engine.module.parameters() if one.requires_grad]


def reports(metrics: dict[str, Any]) -> list[Report]:
    found: list[Report] = metrics[REPORT]
    return found


@pytest.mark.parametrize(("strategy", "packed"), ENGINES)
def test_the_gradients_of_roles_are_those_that_verl_took(
    config: DictConfig, model: Path, strategy: str, packed: bool
) -> None:
    """verl's own grad_norm: of all, and of each role when the others' advantages are zero."""
    mine = actor_config(config, model, strategy=strategy, packed=packed)
    worker = worker_of(mine)
    data = training_rows(worker)
    metrics = train(worker, watched(data), **{ORDER: order()})
    (report,) = reports(metrics)
    (gram,) = report.gradients
    assert report.faults == {}
    assert report.coverage.startswith("role gradients of 28 weights, ")
    assert gram.closure is not None
    assert gram.closure < 1e-5
    assert gram.covered == 1
    assert gram.bypassed == ()
    assert "not covered" not in report.coverage
    assert gram.labels == ("generator/0", "generator/1", "generator/2", "aggregator")
    assert set(gram.halves) == {"generator"}
    products = np.array(gram.products)
    (norm,) = metrics["grad_norm"]
    assert np.sqrt(products.sum()) == pytest.approx(norm, rel=1e-5)
    for role, block in enumerate((slice(0, 3), slice(3, 4))):
        other = worker_of(mine)
        kept = [
            one * float(ROLES[row] == role) for row, one in enumerate(data["advantages"].unbind())
        ]
        (alone,) = train(other, data | {"advantages": jagged(kept)})["grad_norm"]
        assert np.sqrt(products[block, block].sum()) == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("strategy", ["fsdp", "fsdp2"])
def test_mixed_precision(config: DictConfig, model: Path, strategy: str) -> None:
    """verl's default: weights in float32, computing in bfloat16."""
    mine = actor_config(config, model, strategy=strategy)
    mine.actor_rollout_ref.actor.fsdp_config.mixed_precision = None
    worker = worker_of(mine)
    metrics = train(worker, watched(training_rows(worker)), **{ORDER: order()})
    (report,) = reports(metrics)
    assert report.faults == {}
    norm = np.sqrt(np.array(report.gradients[0].products).sum())
    assert norm == pytest.approx(metrics["grad_norm"][0], rel=1e-2)


@pytest.mark.parametrize(("strategy", "packed"), ENGINES)
def test_the_training_is_the_same_watched_and_unwatched(
    config: DictConfig, model: Path, strategy: str, packed: bool
) -> None:
    mine = actor_config(config, model, strategy=strategy, packed=packed)
    plain, seen = worker_of(mine), worker_of(mine)
    data = training_rows(plain)
    one = train(plain, data, mini=4)
    two = train(seen, watched(data), mini=4, **{ORDER: order()})
    assert set(two) - set(one) == {REPORT}
    for name in ("loss", "grad_norm", "actor/ppo_kl", "actor/pg_clipfrac"):
        assert one[name] == two[name]
    assert all(torch.equal(*pair) for pair in zip(weights(plain), weights(seen), strict=True))
    moved = zip(weights(seen), weights(worker_of(mine)), strict=True)
    assert not all(torch.equal(*pair) for pair in moved)


def test_ratios_are_those_of_the_loss(config: DictConfig, model: Path) -> None:
    """Against verl's own numbers, and per role against scoring the rows between the two steps."""
    mine = actor_config(config, model)
    mine.actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu = 4
    mine.actor_rollout_ref.actor.clip_ratio_low = 0.002
    mine.actor_rollout_ref.actor.clip_ratio_high = 0.002
    worker = worker_of(mine)
    data = training_rows(worker)
    metrics = train(worker, watched(data), mini=4, **{ORDER: order(clip=(0.002, 0.002))})
    for report, kl in zip(reports(metrics), metrics["actor/ppo_kl"], strict=True):
        (table,) = report.tables
        (old,) = table.comparisons
        assert (old.kind, old.steps_between) == ("old", report.number)
        assert (old.b_N.sum() - old.a_N.sum()) / old.tokens_N.sum() == pytest.approx(kl, abs=1e-8)
        assert "nll_N" not in table.present  # the trainer counts these outputs
    (table,) = reports(metrics)[1].tables
    assert table.clipped_N is not None
    assert table.scored_N is not None
    clipped = table.clipped_N.sum() / table.scored_N.sum()
    assert clipped == pytest.approx(metrics["actor/pg_clipfrac"][1], rel=1e-6)
    assert clipped > 0

    again = worker_of(mine)
    rows = {name: jagged(list(value.unbind())[:4]) for name, value in data.items()}
    train(again, rows, mini=4)
    out = again.infer_batch(batch_of(columns(ROWS), compute_loss=False))
    new = response_from_nested(out["log_probs"], data["response_mask"]).unbind()
    (old,) = table.comparisons
    for role in (0, 1):
        its = [row for row in range(4, 8) if ROLES[row] == role]
        d = torch.cat([new[row] - data["old_log_probs"].unbind()[row] for row in its]).double()
        mine_N = table.role_N == role
        assert old.tokens_N[mine_N].sum() == len(d)
        assert old.k3_N[mine_N].sum() == pytest.approx(float((d.exp() - d - 1).sum()), rel=1e-4)
        assert old.chi2_N[mine_N].sum() == pytest.approx(float(((2 * d).exp() - 1).sum()), rel=1e-3)


def test_the_gradient_of_several_optimizer_steps_is_their_mean(
    config: DictConfig, model: Path
) -> None:
    mine = actor_config(config, model)
    mine.actor_rollout_ref.actor.optim.lr = 1e-12  # the same rows twice: the same gradient
    worker = worker_of(mine)
    half = {
        name: value[:4] if name in (ROLE, SLOT, PROBLEM) else jagged(list(value.unbind())[:4])
        for name, value in watched(training_rows(worker)).items()
    }
    twice = {
        name: torch.cat([value, value]) if not value.is_nested else jagged([*value.unbind()] * 2)
        for name, value in half.items()
    }
    metrics = train(worker, twice, mini=4, **{ORDER: order()})
    first, last = reports(metrics)
    assert (first.number, last.number, first.gradients) == (0, 1, ())
    (gram,) = last.gradients
    assert metrics["grad_norm"][0] == pytest.approx(metrics["grad_norm"][1], rel=1e-5)
    assert np.sqrt(np.array(gram.products).sum()) == pytest.approx(
        metrics["grad_norm"][0], rel=1e-5
    )
    again = reports(train(worker, twice, mini=4, **{ORDER: order()}))
    assert [one.number for one in again] == [0, 1]


def test_rows_that_fill_up_or_are_unknown(config: DictConfig, model: Path) -> None:
    worker = worker_of(actor_config(config, model))
    data = watched(training_rows(worker))
    data[ROLE] = torch.tensor([0, 0, -1, 1, 0, 0, FILLING, 1])
    (report,) = reports(train(worker, data, **{ORDER: order()}))
    assert report.tables[0].role_N.tolist() == [0, 0, 1, 0, 0, 1]
    assert report.faults == {"role gradients: unknown role": 1}


def test_bypassed_log_probs_are_the_engines(config: DictConfig, model: Path) -> None:
    """The loss is the only place that sees the trainer's log-probabilities then."""
    worker = worker_of(actor_config(config, model))
    data = watched(training_rows(worker))
    asked = order(bypass=True, rollout_temperature=0.7, slots=False)
    (report,) = reports(train(worker, data, **{ORDER: asked}))
    (table,) = report.tables
    assert [one.kind for one in table.comparisons] == ["rollout"]
    assert {"nll_N", "entropy_N"} <= table.present
    assert "clipped_N" not in table.present
    assert report.gradients[0].labels == ("generator", "aggregator")


def test_full_fine_tuning_needs_the_sketch(config: DictConfig, model: Path) -> None:
    mine = actor_config(config, model, lora=0)
    worker = worker_of(mine)
    data = watched(training_rows(worker))
    (report,) = reports(train(worker, data, **{ORDER: order()}))
    assert report.coverage.startswith("not measured")
    assert "store='sketch'" in report.coverage
    assert report.gradients == ()
    sketched = from_mapping({"gradients": {"every": 1, "store": "sketch"}})
    asked = Order(1, VOTING, sketched, slots=True, problems=True, temperature=0.7)
    metrics = train(worker_of(mine), data, **{ORDER: asked})
    (report,) = reports(metrics)
    assert report.coverage.startswith("role gradients of 15 weights")
    assert report.gradients[0].relative_error > 0


def test_what_fails_is_counted_and_the_training_goes_on(
    config: DictConfig, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROLEDRIFT_STRICT")
    worker = worker_of(actor_config(config, model))
    data = watched(training_rows(worker))
    data[SLOT] = data[SLOT].float()  # no slots
    metrics = train(worker, data, **{ORDER: order()})
    (report,) = reports(metrics)
    assert metrics["grad_norm"][0] > 0
    assert report.faults["worker loss: CaptureError"] == 4
    assert report.faults["worker labels: CaptureError"] == 4


def test_engines_whose_models_are_in_pieces_are_left_alone() -> None:
    piece = torch.nn.Linear(1, 1)
    whole = SimpleNamespace(module=piece, prepare_model_inputs=print)
    assert _not_one_piece(whole) == ""
    whole.ulysses_sequence_parallel_size = 2
    assert "cuts sequences apart" in _not_one_piece(whole)
    assert "holds its model in pieces" in _not_one_piece(SimpleNamespace(module=[piece]))
    assert "prepare_model_inputs" in _not_one_piece(SimpleNamespace(module=piece))
    assert os.environ["VERL_PLATFORM"] == "cpu"
