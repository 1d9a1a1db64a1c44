"""Runs that earlier versions wrote are read and judged."""

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from roledrift import open_run, replay
from roledrift.codec import from_plain
from roledrift.config import Config, recorded
from roledrift.detect.conclusion import conclude
from roledrift.records import RunHeader, StepRecord

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "roledrift" / "report" / "demo_run"
RECORDINGS = sorted((ROOT / "benchmarks" / "detection" / "recordings").glob("*.json.xz"))
OLD = {"baseline": {"skip": 3, "window": 6}, "stop_on": ["policy_drift", "hygiene"],
       "extensions": {"shouting": {"share": 0.3}},
       "detectors": {"hygiene": {"enabled": False, "truncated": 0.1}}}  # fmt: skip


def test_the_demo_run_is_read_and_judged() -> None:
    run = open_run(DEMO)
    config = recorded(run.header.config)
    assert (config.baseline.window, config.stop_on, config.detectors) == (8, (), {})
    found = replay(run.steps(), run.header.workflow, config)
    assert found.faults == {}
    outcome = conclude(found.verdicts, found.incidents, len(run.steps()))
    assert outcome.incident is not None
    assert outcome.incident.role == "aggregator"


def test_a_header_of_an_earlier_version_is_read_and_its_run_judged(tmp_path: Path) -> None:
    body = json.loads((DEMO / "run.json").read_text()) | {"config": OLD}
    (tmp_path / "run.json").write_text(json.dumps(body))
    for file in DEMO.glob("*.jsonl"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    run = open_run(tmp_path)
    config = recorded(run.header.config)
    assert config.baseline.window == 6
    assert (config.stop_on, config.detectors) == ((), {})
    assert config.false_alerts_per_run == Config().false_alerts_per_run
    assert replay(run.steps(), run.header.workflow, config).faults == {}
    assert [one.id for one in run.alerts], "alerts without a severity are read too"


@pytest.mark.slow
def test_every_recording_is_read() -> None:
    assert len(RECORDINGS) > 300
    for file in RECORDINGS:
        body: Any = json.loads(lzma.decompress(file.read_bytes()))
        header = from_plain(body["header"])
        assert isinstance(header, RunHeader), file.name
        assert isinstance(recorded(header.config), Config), file.name
        assert header.workflow.role_names, file.name


def test_a_step_without_what_came_later_is_read() -> None:
    step = from_plain({"v": 1, "kind": "step", "step": 3})
    assert isinstance(step, StepRecord)
    assert (step.solved, step.base) == ("", {})
