from roledrift.monitor.budget import Budget, Pace


def run(
    budget: Budget, *, fixed: float = 0.0, periodic: float = 0.0, windows: int = 1
) -> list[str]:
    """Steps of 100 ms whose cost obeys the budget's own settings; what the decisions say."""
    said, step = [], 0
    for _ in range(windows):
        while not budget.full:
            recorded = step % budget.stride == 0
            cost = {"probes": fixed * recorded}
            if recorded and step % budget.factor == 0:
                cost["rescore"] = periodic
            budget.observe(cost, 100 + sum(cost.values()), recorded=recorded)
            step += 1
        said.append(budget.decide(budget.wish()))
    return said


def test_after_eight_steps_it_takes_the_mildest_factor_that_fits() -> None:
    budget = Budget(0.03)
    (said,) = run(budget, fixed=1, periodic=12)
    assert (budget.factor, budget.stride) == (8, 1)
    assert "measured 8 times less often" in said
    assert "13.0%" in said
    assert run(budget, fixed=1, periodic=12, windows=3) == ["", "", ""], "it stays there"


def test_a_host_that_can_leave_steps_out_records_one_of_a_few() -> None:
    budget = Budget(0.03)
    run(budget, fixed=20, periodic=10)
    assert (budget.factor, budget.stride) == (64, 1), "this host cannot"
    budget = Budget(0.03)
    budget.can_skip = True
    (said,) = run(budget, fixed=20, periodic=10)
    assert (20 / budget.stride + 10 / budget.factor) / 100 <= 0.03
    assert f"one step in {budget.stride} is recorded" in said
    assert run(budget, fixed=20, periodic=10, windows=3) == ["", "", ""]


def test_it_comes_back_where_there_is_room() -> None:
    budget = Budget(0.03)
    run(budget, fixed=1, periodic=12)
    assert run(budget, fixed=0.1, periodic=0.2, windows=6)[-1] == ""
    assert budget.factor == 1


def test_one_slow_step_or_write_changes_nothing() -> None:
    budget = Budget(0.03)
    budget.observe({"write": 900}, 1000)
    assert run(budget, fixed=1) == [""]


def test_what_is_due() -> None:
    budget = Budget(0.03)
    assert [step for step in range(1, 9) if budget.due(step, 2)] == [2, 4, 6, 8]
    assert not any(budget.due(step, 0) for step in range(1, 9))
    run(budget, periodic=5)
    assert [step for step in range(1, 9) if budget.due(step, 2)] == [4, 8]


def test_switched_off_or_unknown_steps_are_not_seen() -> None:
    off = Budget(0.0)
    for _ in range(20):
        off.observe({"probes": 50}, 100)
    assert not off.full
    unknown = Budget(0.03)
    for _ in range(20):
        unknown.observe({"probes": 50}, 0)
    assert not unknown.full


def test_all_ranks_keep_the_pace_of_the_first() -> None:
    class Second:
        """What another rank is told: the first one has found a factor of 4."""

        def __init__(self) -> None:
            self.asked = 0

        def spread(self, _stop: bool) -> bool:
            self.asked += 1
            return self.asked <= 2

    budget = Budget(0.03)
    pace = Pace(budget, Second())  # type: ignore[arg-type]
    said = [pace.step({"probes": 0.0}, float(step)) for step in range(9)]
    assert budget.factor == 4
    assert [bool(one) for one in said] == [False] * 8 + [True]
