from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from roledrift.config import recorded
from roledrift.detect.conclusion import conclude
from roledrift.detect.suite import replay_run
from roledrift.errors import ConfigError
from roledrift.report.demos import DEMOS, FOLDER, WITH_TEXTS, Demo, demo_named, unpack_demo
from roledrift.store.reader import open_run

HOME = Path(str(files("roledrift.report")))


@pytest.mark.parametrize("demo", DEMOS, ids=lambda demo: demo.name)
def test_roledrift_says_what_the_demo_claims(demo: Demo, tmp_path: Path) -> None:
    unpack_demo(demo, tmp_path / "run")
    run = open_run(tmp_path / "run")
    assert (run.state, run.problems) == ("finished", ())
    judged = replay_run(run.header, run.steps(), recorded(run.header.config))
    assert judged.faults == {}
    assert conclude(judged.verdicts, judged.incidents, len(run.steps())).outcome == demo.state
    if run.judged:
        assert run.incidents() == judged.incidents
    if not demo.findings:
        assert (judged.alerts, judged.incidents) == ((), ())
        return
    leading = judged.incidents[0]
    assert (leading.role, leading.finding) == demo.findings[0]
    followed = {(one.role, one.finding) for one in leading.consequences}
    assert followed >= set(demo.findings[1:])


def test_the_solved_task_is_solved_and_its_groups_are_equal(tmp_path: Path) -> None:
    unpack_demo(demo_named("solved-task"), tmp_path)
    run = open_run(tmp_path)
    last = run.steps()[-1]
    assert last.totals["accuracy"] > 0.9
    for role in run.header.workflow.role_names:
        assert (last.mean(role, "zero_variance") or 0.0) > 0.5


def test_the_truncated_run_is_truncated_at_its_end(tmp_path: Path) -> None:
    unpack_demo(demo_named("truncation"), tmp_path)
    first, *_, last = open_run(tmp_path).steps()
    assert first.mean("generator", "truncated") == 0.0
    assert last.mean("generator", "truncated") == 1.0


def test_every_packed_run_is_a_demo() -> None:
    packed = {file.name.removesuffix(".json.xz") for file in (HOME / FOLDER).iterdir()}
    assert packed == {demo.name for demo in DEMOS[1:]}
    assert len({demo.name for demo in DEMOS}) == len(DEMOS)


def test_they_are_small() -> None:
    sizes = [file.stat().st_size for file in (HOME / FOLDER).iterdir()]
    with_texts = [one.stat().st_size for one in (HOME / WITH_TEXTS).rglob("*") if one.is_file()]
    assert max(sizes) <= 60_000
    assert 1_000 < sum(with_texts) <= 310_000
    assert sum(sizes) + sum(with_texts) <= 600_000


def test_no_path_of_the_machine_that_recorded_is_shown(tmp_path: Path) -> None:
    for demo in DEMOS[1:]:
        unpack_demo(demo, tmp_path / demo.name)
        run = open_run(tmp_path / demo.name)
        assert not any(one.checkpoints for one in run.steps())


def test_names() -> None:
    assert demo_named("") is DEMOS[0]
    with pytest.raises(ConfigError, match="did you mean 'healthy'"):
        demo_named("heathy")
