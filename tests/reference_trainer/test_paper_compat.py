import pytest
import torch
from torch.utils.data import BatchSampler, RandomSampler

from reference_trainer.config import from_mapping
from reference_trainer.episodes import Parse, Span
from reference_trainer.errors import SettingsError
from reference_trainer.paper_compat import by_length, filled, padded, released_order, tick


def span(length: int, role: str = "generator") -> Span:
    parse = Parse("failed", None)
    return Span(0, 0, role, 0, 0, "p", (1,), (2,) * length, (0.0,), "stop", "", parse, None, 0)


def lengths(spans: list[Span]) -> list[int]:
    return [len(one.output_ids) for one in spans]


def test_short_long_short() -> None:
    assert lengths(by_length([span(n) for n in (5, 1, 6, 3, 2, 4)])) == [1, 3, 5, 6, 4, 2]


def test_length_order_separates_roles() -> None:
    rows = by_length([span(2, "aggregator")] * 16 + [span(20)] * 48)
    parts = filled(rows, size=16)
    shares = [sum(row.role == "aggregator" for row in part) for part in parts]
    assert shares == [8, 0, 0, 8]


def test_copies_of_the_first_rows() -> None:
    assert lengths(padded([span(n) for n in (1, 2, 3, 4, 5)], ranks=4)) == [1, 2, 3, 4, 5, 1, 2, 3]
    assert lengths(padded([span(1)], ranks=4)) == [1, 1, 1, 1]
    assert lengths(padded([span(n) for n in (1, 2)], ranks=1)) == [1, 2]


def test_full_mini_batches_and_a_short_one() -> None:
    assert [len(part) for part in filled([span(1)] * 10, size=4)] == [4, 4, 2]


def test_ticks_count_updates() -> None:
    ticks = [tick(step, place=place, policies=2) for step in (1, 2, 3) for place in (0, 1)]
    assert ticks == [0, 1, 2, 3, 4, 5]


def test_the_order_of_problems_is_that_of_a_sampler_with_a_default_generator() -> None:
    """verl hands torch's RandomSampler a generator without a seed, and drops what is left over."""
    sampler = RandomSampler(range(11), generator=torch.Generator())
    loader = BatchSampler(sampler, batch_size=3, drop_last=True)
    batches = [batch for _ in range(3) for batch in loader]
    ours = [released_order(11, problems=3, step=step) for step in range(1, 10)]
    assert ours == batches
    assert sorted(ours[0] + ours[1] + ours[2]) != sorted(ours[3] + ours[4] + ours[5])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"paper_compat": {"parsers": True}}, "parsers needs rollout.lenient_selection"),
        ({"paper_compat": {"graders": True}}, "graders needs task.name dapo_math or deepcoder"),
        ({"paper_compat": {"data_order": True}}, "data_order needs task.name dapo_math"),
    ],
)
def test_switches_that_need_something(settings: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        from_mapping(settings)
