from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from benchmarks.reproduction.deciding import LEAST_PAIRS, pairs_of
from benchmarks.reproduction.measures import MEASURES, Results
from benchmarks.reproduction.plan import Job, load_plan


def test_every_run_of_the_plan_has_settings_of_its_own() -> None:
    plan = load_plan()
    jobs = plan.jobs("full")
    assert len({plan.hash(job) for job in jobs}) == len(set(jobs)) == len(jobs)
    configs = [replace(plan.config(job), name="") for job in jobs]
    assert all(one != other for one, other in pairwise(configs))


def test_the_grid_has_all_42_cells_with_three_seeds() -> None:
    jobs = [one for one in load_plan().jobs("full") if one.experiment.startswith("grid-")]
    assert len({(one.experiment, one.arm) for one in jobs}) == 42
    assert len([one for one in jobs if one.base <= 5]) == 3 * 42
    spare = {(one.experiment, one.base) for one in jobs if one.base > 5}
    assert spare == {("grid-code-M", 6), ("grid-code-S", 6)}, "two bases there cannot do the task"


def test_the_quick_depth_is_the_beginning_of_the_full_one() -> None:
    plan = load_plan()
    quick, full = plan.jobs("quick"), plan.jobs("full")
    assert set(quick) < set(full)
    rounds = [job.seed % 100 for job in full]
    assert rounds == sorted(rounds)


def test_chosen_arms_and_rounds_alone() -> None:
    plan = load_plan()
    jobs = plan.jobs("full", only=["dose/token-mean", "voters", "grid-code-*"], rounds=2)
    assert {(one.experiment, one.arm) for one in jobs if one.experiment == "dose"} == {
        ("dose", "token-mean")
    }
    assert {one.experiment for one in jobs} == {
        *("dose", "voters", "grid-code-S", "grid-code-M", "grid-code-L")
    }
    assert {one.seed % 100 for one in jobs} == {0, 1}


def test_no_two_bases_share_a_seed_and_development_seeds_are_not_used() -> None:
    jobs = load_plan().jobs("full")
    bases = {job.seed: {one.base for one in jobs if one.seed == job.seed} for job in jobs}
    assert all(len(shared) == 1 for shared in bases.values())
    assert min(job.base for job in jobs) > 2
    assert min(job.seed for job in jobs) > 53


def test_every_test_of_a_claim_finds_pairs_in_the_planned_runs() -> None:
    """If all runs were made, every comparison would have data."""
    plan = load_plan()
    results = made(plan.jobs("full"))
    for claim in plan.claims:
        assert any(test.decides for test in claim.tests), claim.name
        for test in claim.tests:
            if test.kind == "paired":
                assert len(pairs_of(test, results)) >= LEAST_PAIRS, (claim.name, test.name)
            else:
                assert test.measure in MEASURES


def test_the_quick_depth_can_decide_most_claims() -> None:
    plan = load_plan()
    results = made(plan.jobs("quick"))
    undecided = {
        claim.name
        for claim in plan.claims
        for test in claim.tests
        if test.decides and test.kind == "paired" and len(pairs_of(test, results)) < LEAST_PAIRS
    }
    assert undecided == {"sources", "surfaces", "confounders"}


def made(jobs: Sequence[Job]) -> Results:
    """Results with something of everything in every run."""
    roles = ("aggregator", "generator", "evaluator", "synthesizer")
    names = ("terse", "tokens", "k3", "chi2", "ppl")
    given = {
        "accuracy": [0.5] * 12,
        "seconds": 1.0,
        "roles": {role: {name: [1.0] * 12 for name in names} for role in roles},
        "policies": {
            "shared": {"grad_norm": [1.0]},
            "generator": {"grad_norm": [1.0], "rollout_chi2": [1.0] * 12},
        },
        "validation": {"0": "4:f", "6": "4:f"},
        "gradients": [[1, "generator", 1.0, 0.5, 0.1]],
    }
    return Results(
        [
            {"experiment": job.experiment, "arm": job.arm, "base": job.base, "seed": job.seed}
            | given
            for job in jobs
        ]
    )
