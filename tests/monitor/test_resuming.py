"""What a resumed run takes over: records and texts from before its first own step, and no later."""

from __future__ import annotations

from pathlib import Path

from roledrift.judgement import Alert, Incident
from roledrift.monitor.checkpoints import Checkpoints
from roledrift.monitor.components import MonitorComponents
from roledrift.monitor.resuming import replay_records, replay_texts
from roledrift.monitor.textpairs import TextPairs
from roledrift.notices import Notices
from roledrift.records import Checkpoint, Sample, StepRecord


class Judge:
    changed: tuple[Incident, ...] = ()

    def __init__(self) -> None:
        self.steps: list[int] = []

    def update(self, record: StepRecord) -> list[Alert]:
        self.steps.append(record.step)
        return []


def test_the_judge_sees_what_was_recorded_before_the_step(tmp_path: Path) -> None:
    judge = Judge()
    records = [
        StepRecord(step=step, checkpoints=(Checkpoint(step, f"s3://runs/{step}"),))
        for step in range(6)
    ]
    parts = MonitorComponents(judge=judge, history=lambda: records)
    checkpoints = Checkpoints()
    assert replay_records(parts, 4, Notices(), checkpoints) == 4
    assert judge.steps == [0, 1, 2, 3]
    checkpoints.note(9, tmp_path)
    news = checkpoints.news()
    assert news[-2:] == (Checkpoint(3, "s3://runs/3"), Checkpoint(9, str(tmp_path)))
    assert replay_records(MonitorComponents(judge=judge), 4, Notices(), checkpoints) == 0


def test_texts_from_before_the_step_are_shown_in_alerts() -> None:
    texts = [Sample(step=step, role="generator", text=f"said at {step}") for step in (1, 2, 7)]
    pairs = TextPairs()
    replay_texts(MonitorComponents(texts=lambda: texts), 5, pairs)
    replay_texts(MonitorComponents(), 5, pairs)
    pairs.keep([Sample(step=5, role="generator", text="said at 5")])
    (pair, *_) = pairs.around("generator", 3)
    assert pair.before.startswith("said at")
    assert pair.after == "said at 5"
