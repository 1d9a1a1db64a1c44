import time
from pathlib import Path

from roledrift.analysis.runs import open_run
from roledrift.store.glance import stamp
from roledrift.view.judging import BackgroundJudge, judge


def test_a_judgement_is_the_verdict_of_the_run(runs: Path) -> None:
    judged, run = judge(runs / "b-grows"), open_run(runs / "b-grows")
    assert (judged.outcome, judged.sentence) == (run.verdict.outcome, run.verdict.sentence)
    assert (judged.incidents, judged.alerts) == (run.incidents, run.alerts)
    assert judge(runs / "nowhere").outcome == "unreadable"


def test_a_process_of_its_own_judges_while_nobody_waits(runs: Path) -> None:
    background, path = BackgroundJudge(), runs / "a-healthy"
    try:
        assert background.result(path, stamp(path)) is None
        for _ in range(600):
            judged = background.result(path, stamp(path))
            if judged is not None:
                break
            time.sleep(0.1)
        assert judged == judge(path)
    finally:
        background.close()
