from itertools import product

import numpy as np
import pytest

from benchmarks.reproduction.deciding import (
    _of_shares,
    apply_rule,
    area,
    decide,
    reason,
    run_test,
)
from benchmarks.reproduction.measures import Results
from benchmarks.reproduction.plan import Claim, Comparison
from tests.benchmarks.reproduction.rows import row, terse

CAPTURED, KEPT = [0.9] * 6 + [0.1] * 6, [0.9] * 12
LASTING = Comparison("t", "lasting", ("leakage/sp",), ("leakage/ip",), delta=0.3, decides=True)


def results_of(sp: int, ip: int, n: int) -> Results:
    return Results(
        [
            row(f"leakage/{arm}", seed=seed, roles=terse(CAPTURED if seed < hits else KEPT))
            for arm, hits in (("sp", sp), ("ip", ip))
            for seed in range(n)
        ]
    )


def test_shares_have_tangos_interval() -> None:
    found = run_test(LASTING, results_of(6, 0, 6))
    assert (found.n, found.estimate, found.detail) == (6, 1.0, "6/6 against 0/6")
    # All differ one way: sqrt(n (1 - d) / (1 + d)) = z, solved for d.
    z = 1.959964
    assert (found.low, found.high) == pytest.approx(((6 - z**2) / (6 + z**2), 1.0), abs=1e-5)
    assert found.answer == "holds"


def test_tangos_interval_of_a_published_table() -> None:
    """Fagerland, Lydersen, Laake 2014, airway hyper-responsiveness: 21 pairs, 7 and 1 differ."""
    over, under = np.array([1.0] * 7 + [0.0] * 14), np.array([0.0] * 20 + [1.0])
    assert _of_shares(over, under) == pytest.approx((0.026, 0.517), abs=5e-4)


def test_no_difference_is_bounded_by_the_number_of_pairs() -> None:
    few, many = run_test(LASTING, results_of(0, 0, 6)), run_test(LASTING, results_of(0, 0, 30))
    assert few.high == pytest.approx(1.959964**2 / (6 + 1.959964**2), abs=1e-5)
    assert (few.answer, many.answer) == ("cannot tell", "does not hold")


def test_few_pairs_are_never_decided() -> None:
    assert run_test(LASTING, results_of(4, 0, 4)).answer == "cannot tell"
    assert run_test(LASTING, Results([])).answer == "cannot tell"


def test_a_test_that_cannot_tell_says_why() -> None:
    reasons = [
        reason(run_test(LASTING, results_of(*counts)))
        for counts in ((2, 0, 3), (1, 0, 6), (5, 0, 20), (6, 0, 6))
    ]
    assert len(set(reasons)) == 4
    assert reasons[-1] == "", "it can tell"
    assert run_test(LASTING, results_of(5, 0, 20)).low > 0


def test_places_of_the_lists_are_paired() -> None:
    test = Comparison("t", "peak", ("grid-*/*-ip",), ("grid-*/*-sp",), delta=0.02)
    rows = [
        row(f"grid-math-M/{cell}-{way}", validation={"6": bits})
        for cell in ("voting", "eval_opt")
        for way, bits in (("ip", "4:f"), ("sp", "4:3"))
    ]
    found = run_test(test, Results([*rows, row("grid-math-S/voting-ip", validation={"6": "4:f"})]))
    assert (found.n, found.estimate) == (2, pytest.approx(0.5))


@pytest.mark.parametrize(
    ("rule", "bounds", "answer"),
    [
        ("above", (0.4, 0.1, 0.7), "holds"),
        ("above", (0.2, 0.1, 0.4), "cannot tell"),
        ("above", (0.1, -0.1, 0.29), "does not hold"),
        ("same", (0.0, -0.2, 0.2), "holds"),
        ("same", (0.5, 0.31, 0.7), "does not hold"),
        ("same", (0.2, -0.1, 0.5), "cannot tell"),
        ("differs", (-0.5, -0.8, -0.1), "holds"),
        ("differs", (0.0, -0.2, 0.2), "does not hold"),
        ("differs", (0.1, -0.4, 0.5), "cannot tell"),
    ],
)
def test_rules(rule: str, bounds: tuple[float, float, float], answer: str) -> None:
    test = Comparison("t", "last", (), delta=0.3, rule=rule)
    assert apply_rule(test, *bounds) == answer


def test_a_claim_needs_all_or_any_of_its_tests() -> None:
    other = Comparison("t", "lasting", ("leakage/ip",), ("leakage/sp",), delta=0.3, decides=True)
    results = results_of(6, 0, 6)
    every = Claim("c", "", (LASTING, other))
    some = Claim("c", "", (LASTING, other), needs="any")
    assert decide(every, results)[0] == "does not hold"
    assert decide(some, results)[0] == "holds"


def test_area_is_the_share_of_ordered_pairs() -> None:
    labels = np.array([True, True, False, False])
    assert area(np.array([3.0, 1.0, 2.0, 1.0]), labels) == pytest.approx((1 + 1 + 0 + 0.5) / 4)


def test_interaction_sees_one_and_none() -> None:
    test = Comparison("t", "gain", ("grid-*/*",), kind="interaction")
    cells = [
        (task, scale, workflow, way)
        for task in ("math", "code")
        for scale in ("S", "M")
        for workflow in ("voting", "eval_opt", "orch_workers")
        for way in ("sp", "ip")
    ]

    def answer(joint: float) -> str:
        rng = np.random.default_rng(0)
        rows = []
        for task, scale, workflow, way in cells:
            both = joint * (task == "code") * (scale == "M") * (workflow == "voting")
            for seed in range(3):
                share = 0.2 + 0.1 * (task == "code") + both + rng.normal(0, 0.01)
                bits = round(1000 * share) * "1"
                after = f"1000:{int(bits.rjust(1000, '0'), 2):x}"
                validation = {"0": "1000:0", "6": after}
                rows.append(
                    row(f"grid-{task}-{scale}/{workflow}-{way}", seed=seed, validation=validation)
                )
        return run_test(test, Results(rows)).answer

    assert answer(0.3) == "holds"
    assert answer(0.0) == "does not hold"


def test_weak_base_models_are_an_interaction_until_they_have_effects_of_their_own() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for task, scale in product(("math", "code"), ("S", "M")):
        for workflow, way in product(("voting", "eval_opt", "orch_workers"), ("sp", "ip")):
            for base in (1, 2, 3):
                weak = 0.2 * (task == "code" and scale == "M")
                bits = round(1000 * (0.5 - weak + rng.normal(0, 0.01))) * "1"
                validation = {"0": "1000:0", "6": f"1000:{int(bits.rjust(1000, '0'), 2):x}"}
                place = f"grid-{task}-{scale}/{workflow}-{way}"
                rows.append(row(place, base=base, seed=base, validation=validation))
    results = Results(rows)
    found = {
        kind: run_test(Comparison("t", "gain", ("grid-*/*",), kind=kind), results).answer
        for kind in ("interaction", "interaction within bases")
    }
    assert found == {"interaction": "holds", "interaction within bases": "does not hold"}
