from __future__ import annotations

from roledrift.monitor.components import MonitorComponents


def test_nothing_is_thinned_unless_a_budget_is_given() -> None:
    budget = MonitorComponents().budget
    for _ in range(100):
        budget.observe({"probes": 1e6}, 1.0)
    assert budget.due(3, 1)
    assert budget.factor == 1
    assert MonitorComponents().budget is not budget
