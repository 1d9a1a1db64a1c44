import numpy as np
import pytest

from roledrift.errors import CaptureError
from roledrift.pending import BasePolicy
from roledrift.spans import SpanTable
from roledrift.sums import Key, Moments, Sums, add
from roledrift.workflow import VOTING

LENGTH = Key("generator", "length")


class Lengths:
    name = "lengths"
    needs = frozenset({"tokens_N"})

    def measure(self, spans: SpanTable) -> Sums:
        assert spans.tokens_N is not None
        return {LENGTH: Moments.of(spans.tokens_N)}


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
