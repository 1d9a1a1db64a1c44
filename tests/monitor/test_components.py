from __future__ import annotations

from roledrift.parts import Parts


def test_nothing_is_thinned_unless_a_budget_is_given() -> None:
    budget = Parts().budget
    for _ in range(100):
        budget.see({"probes": 1e6}, 1.0)
    assert budget.due(3, 1)
    assert budget.factor == 1
    assert Parts().budget is not budget
