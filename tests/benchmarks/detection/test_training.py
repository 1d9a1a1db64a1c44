from benchmarks.detection.suite import load_suite
from benchmarks.detection.training import Job, queue, shares

SUITE = load_suite()
JOBS = queue(SUITE)


def test_every_planned_run_is_queued_once() -> None:
    planned = {
        (one.name, place)
        for one in SUITE.scenarios
        for place in one.places()
        if place.base is not None
    }
    queued = [(job.scenario.name, job.place) for job in JOBS]
    assert len(set(queued)) == len(queued)
    assert planned <= set(queued)


def test_the_healthy_twin_of_a_branch_comes_before_it() -> None:
    place_of = {(job.scenario.name, job.place): number for number, job in enumerate(JOBS)}
    twins = {one.trunk: one for one in SUITE.scenarios if not one.settings}
    for job in JOBS:
        twin = twins[job.scenario.trunk]
        if job.scenario.settings and not job.scenario.from_start:
            assert place_of[twin.name, job.place] < place_of[job.scenario.name, job.place]


def test_workers_share_the_runs_and_no_trunk() -> None:
    parts = shares(JOBS, 2)
    assert sorted(map(id, JOBS)) == sorted(id(job) for part in parts for job in part)
    groups = [{job.group for job in part} for part in parts]
    assert not groups[0] & groups[1]
    assert abs(len(parts[0]) - len(parts[1])) <= 10


def test_a_scenario_can_be_queued_alone() -> None:
    jobs = queue(SUITE, ["voting-ip-hot"])
    assert {job.scenario.name for job in jobs} == {"voting-ip", "voting-ip-hot"}
    assert all(isinstance(job, Job) for job in jobs)
