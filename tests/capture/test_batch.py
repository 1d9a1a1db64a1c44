"""A batch that does not fit together is refused where it is made, with the reason."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from roledrift.capture.batch import RoleBatch
from roledrift.errors import CaptureError
from roledrift.workflow import VOTING

B, T = 3, 4
NAMES = ["generator", "generator", "aggregator"]
MASK = torch.ones(B, T, dtype=torch.bool)
LOGP = torch.full((B, T), -1.0)


def batch(**columns):
    return RoleBatch.from_padded(VOTING, **{"role": NAMES, "mask": MASK, **columns})


def test_names_become_registry_indices():
    assert batch().role_B.tolist() == [0, 0, 1]
    assert batch(role=torch.tensor([1, 1, 0])).role_B.tolist() == [1, 1, 0]


def test_columns_may_be_lists_or_arrays():
    made = batch(slot=[0, 1, 0], reward=[0.1, 1, 0], truncated=np.array([True, False, False]))
    assert made.slot_B is not None
    assert made.slot_B.tolist() == [0, 1, 0]
    assert made.reward_B is not None
    assert made.reward_B.dtype == torch.float64
    assert made.reward_B[0].item() == 0.1
    assert made.truncated_B is not None
    assert made.truncated_B.dtype == torch.bool


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"role": ["generator", "agregator", "generator"]}, "Did you mean 'aggregator'"),
        ({"role": torch.zeros(B)}, "role_B is torch.float32"),
        ({"role": torch.zeros(2, dtype=torch.int64)}, r"role_B is \(2,\)"),
        ({"mask": torch.ones(B)}, "mask is"),
        ({"mask": torch.ones(B, 0)}, "mask is"),
        ({"logp": LOGP[:, 1:]}, r"logp_BT is \(3, 3\), it must be \(3, 4\)"),
        ({"logp": LOGP.long()}, "logp_BT is torch.int64"),
        ({"old_logp": LOGP}, "logp_BT is not"),
        ({"before_logp": LOGP}, "'update' compares the two"),
        ({"slot": torch.zeros(B)}, "slot_B is torch.float32"),
        ({"group": torch.zeros(B, dtype=torch.bool)}, "group_B is torch.bool"),
        ({"truncated": torch.zeros(B)}, "truncated_B is torch.float32"),
        ({"reward": torch.zeros(B, T)}, "reward_B is"),
        ({"advantage": torch.zeros(B, 1)}, r"\(3,\) or \(3, 4\)"),
        ({"entropy": LOGP.to("meta")}, "entropy_BT is on meta"),
        ({"text": ["a"]}, "text has 1 entries for 3 spans"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"rollout_temperature": float("nan")}, "rollout_temperature is nan"),
        ({"clip": (0.2,)}, "clip is"),
        ({"steps_between": -1}, "steps_between is -1"),
        ({"rewards": torch.zeros(B)}, "did you mean 'reward'"),
        ({"slot": ["a", "b", "c"]}, "slot is not a column of numbers"),
    ],
)
def test_misfits_are_refused_with_the_reason(columns, message):
    with pytest.raises(CaptureError, match=message):
        batch(**columns)


def test_every_misfit_is_named_at_once():
    with pytest.raises(CaptureError) as caught:
        batch(logp=LOGP[:2], slot=torch.zeros(B), temperature=-1.0)
    assert all(name in str(caught.value) for name in ("logp_BT", "slot_B", "temperature"))


def test_rescored_rows_are_an_update_and_no_outputs():
    made = RoleBatch.rescored(VOTING, role=NAMES, mask=MASK, before=LOGP, after=LOGP + 0.1, steps=2)
    assert made.outputs is False
    assert made.steps_between == 2
    assert made.logp_BT is not None
    assert made.before_logp_BT is LOGP


def test_nothing_is_copied():
    assert batch(logp=LOGP).logp_BT is LOGP
    assert batch().mask_BT is MASK
