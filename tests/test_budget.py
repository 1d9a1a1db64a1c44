from roledrift.budget import Budget


def run(budget: Budget, share: float, windows: int = 1) -> list[str]:
    said = []
    for _ in range(windows):
        while not budget.full:
            budget.see(share * 100, 100)
        said.append(budget.decide(budget.wish()))
    return said


def test_the_factor_doubles_above_the_budget_and_halves_far_below() -> None:
    budget = Budget(0.03)
    assert run(budget, 0.12, 2)[0].startswith("every x2 ")
    assert budget.factor == 4
    assert run(budget, 0.02) == [""]
    assert budget.factor == 4
    assert "12.0%" in run(Budget(0.03), 0.12)[0]
    assert run(budget, 0.001, 3)[-1] == ""
    assert budget.factor == 1


def test_it_does_not_stretch_without_end() -> None:
    budget = Budget(0.03)
    run(budget, 0.5, 10)
    assert budget.factor == 64


def test_one_slow_step_changes_nothing() -> None:
    budget = Budget(0.03)
    budget.see(900, 1000)
    assert run(budget, 0.01) == [""]


def test_what_is_due() -> None:
    budget = Budget(0.03)
    assert [step for step in range(1, 9) if budget.due(step, 2)] == [2, 4, 6, 8]
    assert not any(budget.due(step, 0) for step in range(1, 9))
    run(budget, 0.5)
    assert [step for step in range(1, 9) if budget.due(step, 2)] == [4, 8]


def test_switched_off_or_unknown_steps_are_not_seen() -> None:
    off = Budget(0.0)
    for _ in range(20):
        off.see(50, 100)
    assert not off.full
    unknown = Budget(0.03)
    for _ in range(20):
        unknown.see(50, 0)
    assert not unknown.full
