"""The control by problem against explicit gradients."""

from __future__ import annotations

import numpy as np
import pytest

from roledrift.detect.by_problem import by_problem
from roledrift.records import GramRecord


def halved(gradients_SHP: np.ndarray) -> GramRecord:
    """Slots by halves by entries."""
    flat = gradients_SHP.reshape(-1, gradients_SHP.shape[-1])
    rows = tuple(tuple(row) for row in (flat @ flat.T).tolist())
    return GramRecord("own", ("generator/0",), ((1.0,),), halves={"generator": rows})


def test_the_control_by_problem_is_the_mean_of_pairs() -> None:
    g = np.random.default_rng(3).normal(size=(3, 2, 7))
    unit = g / np.linalg.norm(g, axis=-1, keepdims=True)
    pairs = [(a, b) for a in range(3) for b in range(3) if a < b]
    same = [unit[a, h] @ unit[b, h] for a, b in pairs for h in (0, 1)]
    apart = [unit[a, h] @ unit[b, 1 - h] for a, b in pairs for h in (0, 1)]
    found = by_problem(halved(g), "generator")
    assert found is not None
    assert (found.same, found.apart) == pytest.approx((np.mean(same), np.mean(apart)))
    assert found.excess == pytest.approx(np.mean(same) - np.mean(apart))


def test_excess_is_one_for_copies_on_a_prompt_and_nothing_for_a_common_goal() -> None:
    copies = np.broadcast_to(np.eye(2), (3, 2, 2))
    found = by_problem(halved(copies), "generator")
    assert found is not None
    assert (found.same, found.apart) == (1, 0)
    goal = np.ones((3, 2, 4))
    alike = by_problem(halved(goal), "generator")
    assert alike is not None
    assert (alike.same, alike.excess) == pytest.approx((1, 0))


def test_no_control_without_parts() -> None:
    assert by_problem(GramRecord("own", ("generator/0",), ((1.0,),)), "generator") is None
    silent = np.ones((3, 2, 4))
    silent[1, 0] = 0
    assert by_problem(halved(silent), "generator") is None
    assert by_problem(halved(silent * np.nan), "generator") is None
