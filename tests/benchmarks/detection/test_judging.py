import math
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.detection.effects import Effect, Facts, cliff_of, effect, worse
from benchmarks.detection.intervals import Median, Share, mcnemar
from benchmarks.detection.judging import SCALES, Finding, Outcome, credited, judge
from benchmarks.detection.labels import Truth, truth
from benchmarks.detection.scores import alarms, cliffs, recall
from benchmarks.detection.suite import Place, Scenario, load_suite
from roledrift import VOTING

ONSET = 13
PLACE = Place(1, 40)
HOT = Truth("dynamics", ONSET, ("generator", "*"), ("update.k3",), ("role_drift",))


def scenario(label: Any = "failure", **changes: Any) -> Scenario:
    values: dict[str, Any] = {
        "name": "one",
        "trunk": "",
        "label": label,
        "about": "",
        "roles": ("generator",),
        "names": ("role_drift",),
        "also": (),
        "effect": None,
        "settings": {},
        "tune": (),
        "report": (),
    }
    return Scenario(**values | changes)


def facts(validation: dict[int, float], problems: int = 100, **series: list[float]) -> Facts:
    named = {
        ("generator" if name == "k3" else "*", {"k3": "update.k3"}.get(name, name)): dict(
            enumerate(values, start=1)
        )
        for name, values in series.items()
    }
    return Facts(named, validation, problems, max(validation, default=34))


def wiggle(level: float, n: int, first: float | None = None, until: int = 12) -> list[float]:
    """Values around a level that no two steps share, another level up to a step."""
    levels = [level if first is None or i >= until else first for i in range(n)]
    return [value * (1 + 0.05 * math.sin(7.0 * i)) for i, value in enumerate(levels)]


FALLS = facts({0: 0.3, 10: 0.6, 20: 0.3, 30: 0.1})
RISES = facts({0: 0.3, 10: 0.6, 20: 0.62, 30: 0.65})


def test_a_cliff_is_a_fall_that_chance_and_a_tenth_do_not_explain() -> None:
    assert cliff_of(FALLS, 5) == 20
    assert cliff_of(FALLS, 25) == 30  # what fell before the onset is not its doing
    assert cliff_of(facts({0: 0.3, 10: 0.6, 20: 0.35}), 5) is None  # nothing confirms it
    assert cliff_of(facts({0: 0.3, 10: 0.6, 20: 0.5, 30: 0.48}), 5) is None
    assert cliff_of(facts({0: 0.3, 10: 0.6, 20: 0.3, 30: 0.6}), 5) is None  # it came back
    assert cliff_of(facts({0: 0.3, 10: 0.6, 20: 0.4}, problems=9), 5) is None
    assert cliff_of(facts({0: 0.05, 10: 0.0, 20: 0.0}, problems=10**6), 5) is None


def test_an_effect_is_a_difference_from_the_healthy_twin() -> None:
    twin = facts({}, k3=wiggle(1e-4, 34))
    alike = facts({}, k3=list(reversed(wiggle(1e-4, 34))))
    moved = facts({}, k3=wiggle(2e-4, 34, first=1e-4))
    assert effect(HOT, alike, twin) == Effect(moved=False, harmed=False)
    assert effect(HOT, moved, twin) == Effect(moved=True, harmed=False)
    # Whatever the scale: a rank rule has no threshold of its own.
    small = facts({}, k3=[value / 1e3 for value in wiggle(2e-4, 34, first=1e-4)])
    assert effect(HOT, small, facts({}, k3=[value / 1e3 for value in wiggle(1e-4, 34)])).moved
    # Before the onset nothing counts.
    early = facts({}, k3=wiggle(1e-4, 34, first=9e-4))
    assert not effect(HOT, early, twin).moved
    assert not effect(HOT, moved, None).moved
    assert effect(replace(HOT, certain=True), alike, None).moved


def test_an_outcome_is_worse_beyond_the_noise_of_a_validation() -> None:
    assert worse(FALLS, RISES, 5)
    assert not worse(RISES, FALLS, 5)
    assert not worse(facts({20: 0.60, 30: 0.60}), RISES, 5)
    falling = facts({}, accuracy=wiggle(0.4, 34))
    assert worse(falling, facts({}, accuracy=wiggle(0.7, 34)), ONSET)
    assert not worse(falling, facts({}, accuracy=wiggle(0.7, 34)), ONSET, training=False)


def test_an_alert_that_the_twin_raises_too_earns_nothing() -> None:
    told = [
        Finding(20, "generator", "role_drift"),
        Finding(21, "aggregator", "rubber_stamp", "suspicious"),
        Finding(5, "generator", "early"),
    ]
    assert credited(told, [], "any", ONSET) == told[:2]
    assert credited(told, [], "serious", ONSET) == told[:1]
    same = Finding(25, "generator", "role_drift")
    assert credited(told, [same], "any", ONSET) == told[1:2]  # similar step
    assert credited(told, [replace(same, step=26)], "any", ONSET) == told[:2]  # much later
    assert credited(told, [replace(same, step=2)], "any", ONSET) == told[1:2]  # all along
    assert credited(told, [replace(same, role="aggregator")], "any", ONSET) == told[:2]
    # On the scale of serious alerts a twin's suspicion is none.
    mild = replace(same, severity="suspicious")
    assert credited(told, [mild], "serious", ONSET) == told[:1]


def outcome(
    told: list[Finding], run: Facts = FALLS, label: Truth = HOT, label_: str = "failure"
) -> Outcome:
    return judge(scenario(label_), PLACE, label, run, told, (RISES, ()))


def test_a_failure_is_told_by_role_on_either_scale() -> None:
    result = outcome(
        [
            Finding(14, "aggregator", "role_drift"),
            Finding(15, "generator", "length_inflation", "suspicious"),
            Finding(18, "generator", "role_drift"),
            Finding(22, "*", "accuracy_cliff"),
        ]
    )
    assert result.counts
    assert (result.delay("any"), result.delay("serious")) == (2, 5)
    assert [result.by("serious", steps) for steps in (3, 5, None)] == [False, True, True]
    assert (result.cliff, result.leadable) == (20, True)
    assert result.lead("serious") == pytest.approx(2 / 30)
    assert (result.reported["serious"].alerts, result.reported["serious"].correct) == (3, 2)
    assert result.reported["any"].named
    assert result.name == "one-b1-40"


def test_an_alert_about_accuracy_is_not_ahead_of_the_fall() -> None:
    result = outcome([Finding(16, "*", "accuracy_cliff"), Finding(16, "*", "reward_drop")])
    assert result.delay("any") == 3
    assert result.lead("any") is None


def test_figures_are_told_on_one_scale() -> None:
    healthy = Truth("healthy", ONSET, ("*",))
    runs = [
        outcome([Finding(18, "generator", "role_drift")]),
        outcome([Finding(18, "generator", "role_drift", "suspicious")]),
        outcome([Finding(24, "generator", "role_drift")]),
        outcome([], run=RISES),  # the fault did nothing: no failure
        outcome([Finding(4, "*", "x", "suspicious")], label=healthy, label_="healthy"),
        outcome([], label=healthy, label_="healthy"),
    ]
    found = {scale: recall(runs, "dynamics", scale) for scale in SCALES}
    assert (found["any"].injected, found["any"].by["end"].n) == (4, 3)
    assert str(found["any"].by["+5"]).startswith("2/3 = 67 %")
    assert str(found["serious"].by["+5"]).startswith("1/3")
    assert (alarms(runs, "serious").healthy.hits, alarms(runs, "any").healthy.hits) == (0, 1)
    led = cliffs(runs, "any")
    assert (led.all, led.led.hits, led.led.n) == (3, 2, 3)
    assert cliffs(runs, "serious").lead.value == pytest.approx(-4 / 30)


def test_intervals_are_exact() -> None:
    none = Share(0, 24)
    assert none.interval[1] == pytest.approx(1 - 0.025 ** (1 / 24))
    assert Share(3, 24).interval == pytest.approx((0.0266, 0.3236), abs=1e-4)
    assert (str(Share(0, 0)), Share(0, 0).value) == ("-", None)
    assert Median.of([3.0, 1.0, 2.0]).value == 2.0
    assert Median.of([1.0, -math.inf, -math.inf]).text() == "none [none, 1] (n 3)"
    assert mcnemar([True] * 6 + [False], [False] * 6 + [False]) == (6, 0, pytest.approx(2 / 64))
    assert mcnemar([True], [True]) == (0, 0, 1.0)


SUITE = load_suite()
LABELS = {one.name: truth(SUITE, one, VOTING.routed("isolated")) for one in SUITE.scenarios}


@pytest.mark.parametrize(
    ("name", "family", "onset", "roles"),
    [
        ("voting-ip-hot", "dynamics", 13, {"generator", "aggregator", "*"}),
        ("voting-ip-hot-generator", "dynamics", 13, {"generator"}),
        ("weak-ip-verbose", "dynamics", 13, {"aggregator"}),
        ("voting-ip-hot0", "from the start", 1, {"generator", "aggregator", "*"}),
        ("voting-ip-unserved", "input", 13, {"generator"}),
        ("voting-ip-duplicates", "input", 13, {"generator", "aggregator", "*"}),
        ("capture-sp", "capture", 1, {"aggregator"}),
    ],
)
def test_labels_say_who_was_hit(name: str, family: str, onset: int, roles: set[str]) -> None:
    label = LABELS[name]
    assert (label.family, label.onset, set(label.roles)) == (family, onset, roles)


def test_under_a_shared_policy_a_hot_role_is_everyone_of_that_policy() -> None:
    hot = next(one for one in SUITE.scenarios if one.name == "voting-ip-hot-generator")
    assert set(truth(SUITE, hot, VOTING).roles) == {"generator", "aggregator"}
