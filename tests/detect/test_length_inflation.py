from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from roledrift.config import Config
from roledrift.detect.length_inflation import LengthInflation
from roledrift.errors import ConfigError
from roledrift.records import Verdict
from roledrift.thresholds import DetectorsConfig, LengthInflationConfig
from roledrift.workflow import ORCH_WORKERS, VOTING, Workflow


def judge(records: Any, workflow: Workflow = VOTING, config: Config | None = None) -> list[Verdict]:
    detector = LengthInflation(workflow, config or Config())
    return [one for record in records for one in detector.update(record)]


@pytest.mark.parametrize("length", [10, 20])
@pytest.mark.parametrize("after", [16.0, 20.0])
def test_an_aggregator_that_grows_is_found(
    run: Any, ramp: Any, noise: Any, length: int, after: float
) -> None:
    rng = np.random.default_rng(length)
    growing = ramp(5.0, after, start=20, length=length, steps=60) * noise(rng, 60, sd=0.08)
    verdicts = judge(
        run(
            {
                "generator": {"length": 18 * noise(rng, 60, sd=0.03)},
                "aggregator": {"length": growing},
            }
        )
    )
    first = next(step for step, one in enumerate(verdicts) if one.state == "drift")
    found = verdicts[first]
    assert found.finding == "length_inflation"
    assert found.onset is not None
    assert 18 <= found.onset <= 20 + length // 2
    assert first <= 20 + length // 2 + 5
    assert all(one.state == "drift" for one in verdicts[first + 5 :])
    assert "generator x" in found.reason
    assert f"since step {found.onset}" in found.reason
    assert found.value is not None
    assert found.threshold is not None
    assert found.value >= found.threshold


def test_until_the_baseline_is_full_there_is_no_verdict(run: Any) -> None:
    verdicts = judge(run({"aggregator": {"length": [5.0] * 9}}))
    assert [one.state for one in verdicts] == ["no verdict"] * 8 + ["ok"]
    assert verdicts[0].needs == ("7 more steps of baseline",)
    assert verdicts[6].needs == ("1 more step of baseline",)


def test_without_lengths_it_says_so(run: Any) -> None:
    verdicts = judge(run({"aggregator": {"reward": [1.0] * 3}}))
    assert {one.state for one in verdicts} == {"no verdict"}
    assert verdicts[-1].needs == ("length",)


def test_a_spike_is_not_drift(run: Any) -> None:
    lengths = [5.0] * 20 + [500.0] + [5.0] * 20 + [40.0, 40.0] + [5.0] * 10
    verdicts = judge(run({"aggregator": {"length": lengths}}))
    assert "drift" not in {one.state for one in verdicts}


def test_when_all_roles_grow_alike_the_role_is_only_watched(run: Any, ramp: Any) -> None:
    def growth(start: float) -> Any:
        return ramp(start, 2.2 * start, start=20, length=15, steps=60)

    verdicts = judge(
        run({"generator": {"length": growth(18.0)}, "aggregator": {"length": growth(5.0)}})
    )
    assert verdicts[-1].state == "watch"
    assert "grown alike" in verdicts[-1].reason
    assert "drift" not in {one.state for one in verdicts}


def test_growth_by_a_fraction_of_a_token_is_no_drift(run: Any) -> None:
    verdicts = judge(run({"aggregator": {"length": [2.0] * 20 + [3.9] * 40}}))
    assert verdicts[-1].state == "watch"


def test_a_step_without_the_role_is_passed_over(run: Any, ramp: Any) -> None:
    lengths: list[float | None] = ramp(5.0, 20.0, start=20, length=5, steps=50)
    whole = judge(run({"aggregator": {"length": lengths}}))
    with_gaps = [None if t % 3 == 1 else x for t, x in enumerate(lengths)]
    gappy = judge(run({"aggregator": {"length": with_gaps}}))
    assert len(gappy) < len(whole)
    assert gappy[-1].state == whole[-1].state == "drift"


def test_the_terse_roles_are_watched_else_all_else_the_configured(run: Any) -> None:
    voting = run({role: {"length": [5.0]} for role in VOTING.role_names})
    assert [one.role for one in judge(voting)] == ["aggregator"]
    orch = run({role: {"length": [5.0]} for role in ORCH_WORKERS.role_names})
    assert [one.role for one in judge(orch, ORCH_WORKERS)] == list(ORCH_WORKERS.role_names)
    section = LengthInflationConfig(roles=("generator",))
    config = Config(detectors=DetectorsConfig(length_inflation=section))
    assert [one.role for one in judge(voting, VOTING, config)] == ["generator"]


def test_a_configured_role_must_exist() -> None:
    section = LengthInflationConfig(roles=("agregator",))
    with pytest.raises(ConfigError, match="aggregator"):
        LengthInflation(VOTING, Config(detectors=DetectorsConfig(length_inflation=section)))
