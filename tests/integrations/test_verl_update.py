"""What the trainer's side of an update decides, from plain data. Real classes: tests/envs/verl/."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from roledrift_verl.batch import Rows, Sampling
from roledrift_verl.update import (
    WorkerGradients,
    choose,
    clip_of,
    columns_of,
    compared,
    multiple_of,
    replays_routing,
    steps_of,
)
from roledrift_verl.wire import FILLING, PROBLEM, ROLE, SLOT

from roledrift import VOTING, TokenCapture
from roledrift.records import GramRecord

WHO = [("generator", 0), ("generator", 1), ("aggregator", None), ("critic", None), ("generator", 2)]
ROLES = VOTING.role_names


def rows(**columns: torch.Tensor) -> Rows:
    named = tuple({"uid": uid} for uid in ("a", "a", "a", "b", "b"))
    return Rows(columns, ((1,),) * 5, ((2, 3),) * 5, named, places=(0, 1, 2, 4, 5))


def trainer(*, ranks: int = 2, rollout: dict[str, Any], actor: dict[str, Any]) -> Any:
    its = SimpleNamespace(
        actor=_Section(actor), rollout=_Section({"n": 4} | rollout), **{"model": None}
    )
    return SimpleNamespace(
        config=SimpleNamespace(actor_rollout_ref=its),
        actor_rollout_wg=SimpleNamespace(_dispatch_info={"actor": list(range(ranks))}),
    )


class _Section(dict):  # type: ignore[type-arg]
    """As OmegaConf: keys are attributes too."""

    __getattr__ = dict.__getitem__


def test_workers_are_told_of_every_row_of_the_batch() -> None:
    columns, slots, problems = columns_of(VOTING, rows(), WHO, total=6)
    assert columns[ROLE].tolist() == [0, 0, 1, FILLING, -1, 0]
    assert columns[SLOT].tolist() == [0, 1, 0, 0, 0, 2]
    assert columns[PROBLEM].tolist() == [0, 0, 0, 0, 1, 1]
    assert slots
    assert problems
    unsaid = [("generator", None), *WHO[1:]]
    assert not columns_of(VOTING, rows(), unsaid, total=6)[1]


@pytest.mark.parametrize(
    ("per_role", "multiple", "chosen"),
    [
        (1, 1, [0, 2]),
        (2, 1, [0, 1, 2]),
        (2, 2, [0, 1, 2, 3]),  # filled up with a row of no role
        (1, 4, [0, 1, 2, 3]),
        (3, 4, [0, 1, 2, 4]),
        (9, 3, [0, 1, 2]),  # not enough rows for six
        (1, 6, []),
    ],
)
def test_rows_to_score_again_can_be_dealt_out(
    per_role: int, multiple: int, chosen: list[int]
) -> None:
    assert choose(ROLES, WHO, per_role=per_role, multiple=multiple) == chosen


def test_what_verl_deals_out() -> None:
    fixed = trainer(rollout={"log_prob_micro_batch_size_per_gpu": 3}, actor={})
    assert multiple_of(fixed) == 6
    assert multiple_of(trainer(rollout={"log_prob_use_dynamic_bsz": True}, actor={})) == 2
    assert multiple_of(trainer(rollout={}, actor={}, ranks=1)) == 1
    two = trainer(rollout={}, actor={"ppo_mini_batch_size": 2, "ppo_epochs": 3})
    assert steps_of(two, 16) == 6
    assert steps_of(two, 4) == 3


def test_clip_range_and_routing() -> None:
    both = trainer(rollout={}, actor={"clip_ratio_low": 0.2, "clip_ratio_high": 0.28})
    assert clip_of(both) == (0.2, 0.28)
    assert clip_of(trainer(rollout={}, actor={"clip_ratio": 0.1})) == (0.1, 0.1)
    assert clip_of(trainer(rollout={}, actor={"policy_loss": {"loss_mode": "gspo"}})) is None
    assert not replays_routing(both)
    replay = {"megatron": {"router_replay": {"mode": "R2"}}}
    assert replays_routing(trainer(rollout={}, actor=replay))


def test_rows_of_no_role_are_scored_for_nothing() -> None:
    its = rows(response_mask=torch.ones(5, 2, dtype=torch.int64))
    before = torch.zeros(3, 2)
    made = compared(
        VOTING,
        its,
        WHO,
        chosen=[0, 2, 3],
        scores=(before, before + 0.5),
        how=Sampling(temperature=0.7),
        steps=2,
    )
    capture = TokenCapture(VOTING)
    capture.add(made)
    (table,) = capture.drain()
    assert table.role_N.tolist() == [0, 1]
    (update,) = table.comparisons
    assert (update.kind, update.steps_between) == ("update", 2)
    assert capture.faults() == {}


def test_ranks_say_the_same_gradients() -> None:
    source = WorkerGradients()
    gram = GramRecord("shared", ("generator",), ((1.0,),))
    source.add([gram])
    source.add([gram])
    assert source.drain_gradients() == [gram]
    assert source.drain_gradients() == []
    source.stretch(4)
    assert (source.factor, source.faults()) == (4, {})
