"""Slot gradients split by problem: the halves add up, and there are none without both."""

from __future__ import annotations

import pytest
import torch
from gradient_models import (
    ROLES,
    SLOTS,
    VOTING,
    flat,
    loss_of,
    rows,
    tiny_model,
    trained,
)

from roledrift.capture.gradients import RoleGradientProbe
from roledrift.errors import CaptureError
from roledrift.gram import matrix

PROMPTS = torch.tensor([4, 7, 0, 2, 1, 5, 8, 3])
"""Generator rows: slot 0 on an even and an odd problem, slot 1 on an odd and an even one, slot 2
on an even one only, until row 2 is made its odd problem."""


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("store", ["fold", "full", "sketch"])
def test_halves_by_problem_add_up_to_slots(store: str) -> None:
    roles, slots = ROLES.clone(), SLOTS.clone()
    roles[2], slots[2] = 0, 2
    prompts = PROMPTS.clone()
    prompts[2] = 9
    parts = {(0, 0): [0], (0, 1): [5], (1, 0): [6], (1, 1): [1], (2, 0): [3], (2, 1): [2]}
    found = {}
    for halves in (False, True):
        model = tiny_model(torch.float64)
        probe = RoleGradientProbe(VOTING, every=1, store=store, halves=halves)
        probe.attach(model)
        ids, weight_B = rows()
        for half in (slice(0, 4), slice(4, 8)):
            with probe.groups(roles[half], slots[half], prompt=prompts[half]):
                loss_of(model, ids[half], weight_B[half]).backward()
        (found[halves],) = probe.drain_gradients()
    assert found[False].halves == {}
    assert found[True].labels == found[False].labels
    assert matrix(found[True]) == pytest.approx(matrix(found[False]), rel=1e-9, abs=1e-14)
    assert set(found[True].halves) == {"generator"}
    halved = torch.tensor(found[True].halves["generator"], dtype=torch.float64)
    summed = halved.reshape(3, 2, 3, 2).sum((1, 3))
    assert summed.numpy() == pytest.approx(matrix(found[True])[:3, :3], rel=1e-9)
    if store == "full":
        ids, weight_B = rows()
        own = []
        for where in parts.values():
            model = tiny_model(torch.float64)
            loss_of(model, ids[where], weight_B[where]).backward()
            own.append(flat(trained(model)))
        expected = torch.stack(own) @ torch.stack(own).t()
        assert (halved - expected).abs().max() < 1e-10 * expected.abs().max()


def test_no_halves_without_both_of_every_slot() -> None:
    model = tiny_model()
    probe = RoleGradientProbe(VOTING, every=1, halves=True)
    probe.attach(model)
    ids, weight_B = rows()
    with probe.groups(ROLES, SLOTS, prompt=PROMPTS):
        loss_of(model, ids, weight_B).backward()
    (record,) = probe.drain_gradients()
    assert record.halves == {}
    assert record.labels == ("generator/0", "generator/1", "generator/2", "aggregator")
    with pytest.raises(CaptureError, match="no problem was given"):
        probe.set_groups(ROLES, SLOTS)
