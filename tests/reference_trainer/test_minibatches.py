from collections import Counter

import pytest

from reference_trainer.episodes import Parse, Span
from reference_trainer.minibatches import Order, split


def span(i: int, role: str) -> Span:
    parse = Parse("failed", None)
    return Span(i, 0, role, 0, 0, "p", (1,), (2,) * (1 + i % 5), (0.0,), "stop", "", parse, None, 0)


SPANS = [span(i, "generator" if i % 4 else "aggregator") for i in range(64)]


@pytest.mark.parametrize("order", ["shuffled", "balanced", "by_role"])
@pytest.mark.parametrize("count", [1, 3, 4])
def test_every_row_once_in_parts_of_nearly_one_size(order: Order, count: int) -> None:
    parts = split(SPANS, count=count, order=order, seed=1)
    assert len(parts) == count
    assert Counter(row for part in parts for row in part) == Counter(SPANS)
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= (2 if order == "balanced" else 1)
    assert parts == split(SPANS, count=count, order=order, seed=1)
    assert parts != split(SPANS, count=count, order=order, seed=2)


def aggregators(order: Order) -> list[int]:
    parts = split(SPANS, count=4, order=order, seed=1)
    return [sum(row.role == "aggregator" for row in part) for part in parts]


def test_roles_are_spread_evenly_or_kept_together() -> None:
    assert aggregators("balanced") == [4, 4, 4, 4]
    assert aggregators("by_role") == [16, 0, 0, 0]
    assert sum(aggregators("shuffled")) == 16


def test_a_role_with_fewer_rows_than_mini_batches() -> None:
    parts = split([*SPANS[1:4], SPANS[0]], count=4, order="balanced", seed=0)
    assert Counter(row for part in parts for row in part) == Counter(SPANS[:4])
    assert all(parts)
