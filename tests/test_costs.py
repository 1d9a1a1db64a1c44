"""What a run has cost, from whatever its records hold; what is unknown is None, never 0."""

from __future__ import annotations

import pytest

from roledrift.config import CostsConfig
from roledrift.costs import EQUAL, STILL, UNTRAINED, Costs, costs, with_given
from roledrift.records import RunHeader, Stat, StepRecord
from roledrift.workflow import SINGLE, VOTING

LOG = RunHeader("r", SINGLE)
OWN = RunHeader("r", VOTING)


def _logged(step: int, time: str = "", **numbers: float) -> StepRecord:
    names = [name for name in ("runtime", "grad_norm") if name in numbers]
    totals = {name: numbers.pop(name) for name in names}
    groups = {"*": {name: Stat(1, value) for name, value in numbers.items()}}
    return StepRecord(step, time=time, groups=groups, totals=totals)


def _clock(second: int) -> str:
    return f"2026-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"


def test_nothing_known_is_said_and_is_not_zero() -> None:
    found = costs([_logged(step, reward=0.3) for step in range(1, 11)], LOG)
    assert found.steps == 10
    unknown = (found.idle, found.truncated, found.hours, found.devices, found.gpu_hours)
    assert unknown == (None,) * 5
    assert (found.money, found.gpu_hour_cost, found.idle_by) == (None, None, {})
    assert found.basis.keys() == {"idle", "hours", "devices", "gpu_hour_cost"}
    assert "unknown" in found.sentence


def test_an_empty_run_costs_nothing_that_is_known() -> None:
    assert costs([], LOG).hours is None


def test_groups_of_equal_reward_weigh_as_many_steps_as_a_record_stands_for() -> None:
    # Records of 10, 10 and 30 steps: (10 * 0.2 + 10 * 0.4 + 30 * 0.8) / 50.
    shares = {10: 0.2, 20: 0.4, 50: 0.8}
    found = costs([_logged(step, zero_variance=x) for step, x in shares.items()], LOG)
    assert found.steps == 50
    assert found.idle == pytest.approx(0.6)
    assert found.idle_by == {EQUAL: pytest.approx(0.6)}


def test_roles_weigh_by_their_rollouts_and_untrained_ones_count_whole() -> None:
    def role(rows: float, share: float, updates: float) -> dict[str, Stat]:
        count = Stat(1, updates, high=updates)
        return {"advantage": Stat(rows, 0), "zero_variance": Stat(4, share), "updates": count}

    # 24 rows of which a quarter moved nothing, and 8 rows of a role that is not trained.
    groups = {"generator": role(24, 0.25, 1), "aggregator": role(8, 0.5, 0), "*": role(32, 0.9, 1)}
    found = costs([StepRecord(1, groups=groups)], OWN)
    assert found.idle == pytest.approx((6 + 8) / 32)
    assert found.idle_by == {EQUAL: pytest.approx(6 / 32), UNTRAINED: pytest.approx(8 / 32)}


def test_a_share_that_only_some_roles_have_says_so() -> None:
    groups = {"generator": {"zero_variance": Stat(4, 0.5)}, "aggregator": {"length": Stat(4, 9)}}
    found = costs([StepRecord(1, groups=groups)], OWN)
    assert found.idle == 0.5
    assert found.basis["idle"].endswith("known of generator only")


def test_all_roles_together_stand_in_where_no_role_has_the_share() -> None:
    assert costs([_logged(1, zero_variance=0.5)], OWN).idle == 0.5


def test_a_gradient_of_zero_means_that_nothing_moved_at_all() -> None:
    def at(step: int, norm: float) -> StepRecord:
        return _logged(step, zero_variance=0.5, grad_norm=norm)

    assert costs([at(1, 0.1), at(2, 0.0)], LOG).idle_by == {EQUAL: 0.25, STILL: 0.5}
    sparse = costs([at(10, 0.0), at(20, 0.0)], LOG)
    assert sparse.idle_by == {EQUAL: 0.5}, "the norm is that of one step of ten"


def test_rllm_counts_problems_instead_of_groups() -> None:
    totals = {"solve_none": 3.0, "solve_all": 1.0, "solve_partial": 12.0}
    assert costs([StepRecord(1, totals=totals)], LOG).idle == 0.25


def test_truncated_responses_are_told_and_not_added() -> None:
    found = costs([_logged(1, zero_variance=0.25, truncated=0.5)], LOG)
    assert (found.idle, found.truncated) == (0.25, 0.5)


def test_timestamps_come_before_step_times_and_step_times_before_the_run_time() -> None:
    timed = [_logged(n, _clock(90 * n), step_time=60.0, runtime=50.0) for n in range(1, 42)]
    assert costs(timed, LOG).hours == pytest.approx(41 * 90 / 3600)
    steps = [_logged(n, step_time=60.0, runtime=50.0) for n in range(1, 42)]
    assert costs(steps, LOG).hours == pytest.approx(41 * 60 / 3600)
    summary = [_logged(n, reward=0.1) for n in range(1, 41)] + [_logged(41, runtime=7200.0)]
    assert costs(summary, LOG).hours == pytest.approx(2.0)


def test_a_step_time_that_is_logged_every_ten_steps_counts_ten_times() -> None:
    records = [_logged(n, step_time=36.0) for n in (10, 20, 30)]
    assert costs(records, LOG).hours == pytest.approx(30 * 36 / 3600)


def test_a_pause_of_hours_is_left_out_and_said() -> None:
    seconds = [60 * n + (20000 if n > 5 else 0) for n in range(10)]
    found = costs([_logged(n, _clock(at)) for n, at in enumerate(seconds)], LOG)
    assert found.hours == pytest.approx(10 / 60)
    assert "1 pause" in found.basis["hours"]


def test_times_of_two_processes_are_not_subtracted() -> None:
    def at(step: int, writer: str, second: int) -> StepRecord:
        return StepRecord(step, writer=writer, time=_clock(second))

    records = [at(1, "a", 0), at(2, "a", 10), at(3, "b", 3000), at(4, "b", 3010)]
    assert costs(records, LOG).hours == pytest.approx(4 * 10 / 3600)


@pytest.mark.parametrize("wrong", ["", "yesterday", "2026-01-01T00:00:00"])
def test_times_that_say_nothing_are_unknown(wrong: str) -> None:
    assert costs([_logged(n, wrong) for n in range(5)], LOG).hours is None


def test_devices_are_given_or_noted_or_follow_from_verls_throughput() -> None:
    verl = [_logged(n, model_tokens=8e5, step_time=100.0, throughput=1000.0) for n in range(1, 5)]
    log = RunHeader("r", SINGLE, host="verl")
    assert costs(verl, log).devices == 8
    assert costs(verl, LOG).devices is None, "other trainers' throughput is of all GPUs together"
    noted = RunHeader("r", SINGLE, notes={"devices": "4 (processes of the trainer)"})
    assert costs(verl, noted).devices == 4
    assert costs(verl, noted, CostsConfig(devices=16)).devices == 16
    assert costs(verl, RunHeader("r", SINGLE, notes={"devices": "some"})).devices is None


def test_a_throughput_that_gives_no_whole_number_of_devices_gives_none() -> None:
    log = RunHeader("r", SINGLE, host="verl")
    odd = [_logged(n, model_tokens=2.5e5, step_time=100.0, throughput=1000.0) for n in range(1, 5)]
    assert costs(odd, log).devices is None


def test_money_is_gpu_hours_times_what_one_costs() -> None:
    records = [_logged(n, step_time=36.0, zero_variance=0.25) for n in range(1, 101)]
    found = costs(records, LOG, CostsConfig(devices=8, gpu_hour=2.5))
    assert found.hours == pytest.approx(1.0)
    assert found.gpu_hours == pytest.approx(8.0)
    assert found.idle_gpu_hours == pytest.approx(2.0)
    assert found.money == pytest.approx(20.0)
    for part in ("25 %", "8 GPU hours", "2 of them", "20 at 2.5"):
        assert part in found.sentence
    assert costs(records, LOG, CostsConfig(gpu_hour=2.5)).money is None


def test_what_is_given_counts_more_than_the_configuration() -> None:
    assert with_given(CostsConfig(8, 2.0), CostsConfig(0, 3.0)) == CostsConfig(8, 3.0)
    assert with_given(CostsConfig(8, 2.0), None) == CostsConfig(8, 2.0)


def test_a_sentence_never_claims_more_than_is_known() -> None:
    assert "unknown number of GPUs" in Costs(10, idle=0.1, hours=2.0).sentence
