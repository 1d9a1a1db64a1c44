import numpy as np
import pytest

from roledrift.errors import CaptureError
from roledrift.monitor.pending import BasePolicy, Pending
from roledrift.spans import Provenance, SpanTable
from roledrift.sums import Key, Moments, Sums, add
from roledrift.workflow import VOTING
from tests.monitor.probes import Lengths

LENGTH = Key("generator", "length")


class TwoRanks:
    """Another rank has measured the same."""

    def __init__(self) -> None:
        self.calls = 0

    def add(self, sums: Sums) -> Sums:
        self.calls += 1
        return add([sums, sums])

    def spread(self, flag: bool) -> bool:
        return flag

    def is_first(self) -> bool:
        return True


def table(*tokens: int) -> SpanTable:
    roles = np.zeros(len(tokens), dtype=np.int64)
    return SpanTable(VOTING.role_names, role_N=roles, tokens_N=np.array(tokens))


def test_the_sums_are_taken_once_and_over_all_ranks() -> None:
    base, ranks = BasePolicy(), TwoRanks()
    base.measure([Lengths()], table(1, 2))
    base.measure([Lengths()], table(6))
    found = base.take(ranks)[LENGTH]
    assert isinstance(found, Moments)
    assert (found.n, found.total) == (6, 18.0)
    assert base.take(ranks) == {}
    assert ranks.calls == 1, "all ranks take them at their first step and never again"


def test_ranks_without_a_base_policy_take_part_too() -> None:
    ranks = TwoRanks()
    assert BasePolicy().take(ranks) == {}
    assert ranks.calls == 1


def test_after_the_first_step_it_is_too_late() -> None:
    base = BasePolicy()
    base.take(None)
    with pytest.raises(CaptureError, match="before"):
        base.measure([Lengths()], table(1))


def test_the_record_holds_what_came_in() -> None:
    pending = Pending(totals={"reward": 0.5}, solved="01", missing={"text_N", "logp"})
    pending.present.add("logp")
    pending.labels["schedule"] = "every step"
    pending.faults.update({"b": 1, "a": 2})
    pending.cost_ms.update({"probes": 1})
    pending.sources["update"] = {Provenance(1.0, 1.0, 1)}
    record = pending.record(3, "2026-01-01T00:00:00Z")
    assert (record.step, record.time, record.solved) == (3, "2026-01-01T00:00:00Z", "01")
    assert record.totals == {"reward": 0.5}
    assert record.missing == ("text_N",)
    assert list(record.faults.items()) == [("a", 2), ("b", 1)]
    assert set(record.labels) == {"update", "schedule"}
    assert record.cost_ms == {"probes": 1.0}
    assert record.groups == record.base == {}
