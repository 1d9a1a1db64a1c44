"""What a monitor gathers between two steps."""

import numpy as np
import pytest

from roledrift.errors import CaptureError
from roledrift.measure import PROBES
from roledrift.pending import BasePolicy, Pending
from roledrift.spans import Source, SpanTable
from roledrift.workflow import VOTING

LENGTHS = PROBES["lengths"](VOTING)
SPANS = SpanTable(VOTING.role_names, np.array([0, 1]), tokens_N=np.array([20, 4]))


def test_the_record_holds_what_came_in() -> None:
    pending = Pending(totals={"reward": 0.5}, solved="01", missing={"text_N", "logp"})
    pending.present.add("logp")
    pending.labels["schedule"] = "every step"
    pending.faults.update({"b": 1, "a": 2})
    pending.cost_ms.update({"probes": 1})
    pending.sources["update"] = {Source(1.0, 1.0, 1)}
    record = pending.record(3, "2026-01-01T00:00:00Z")
    assert (record.step, record.time, record.solved) == (3, "2026-01-01T00:00:00Z", "01")
    assert record.totals == {"reward": 0.5}
    assert record.missing == ("text_N",)
    assert list(record.faults.items()) == [("a", 2), ("b", 1)]
    assert set(record.labels) == {"update", "schedule"}
    assert record.cost_ms == {"probes": 1.0}
    assert record.groups == record.base == {}


def test_the_base_policy_is_measured_before_the_first_step_alone() -> None:
    base = BasePolicy()
    base.measure([LENGTHS, PROBES["words"](VOTING)], SPANS)
    groups = {key.group for key in base.take(None)}
    assert {"generator", "aggregator"} <= groups
    assert base.take(None) == {}
    with pytest.raises(CaptureError, match="before"):
        base.measure([LENGTHS], SPANS)
