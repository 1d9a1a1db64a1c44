from __future__ import annotations

from dataclasses import replace

from roledrift.records import Stat
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Prose
from roledrift.report.sections import data


def test_remarks_name_faults_missing_columns_and_problems(healthy: JudgedRun) -> None:
    found = data.remarks(replace(healthy, problems=("steps.w.jsonl:3: half a line",), seams=(9,)))
    assert found[0] == "steps.w.jsonl:3: half a line"
    assert "a later process took over at step 9" in found
    assert "fault: non-finite log-prob (2 times)" in found
    assert "all 40 records lack entropy_N" in found


def test_refused_comparisons_are_counted(healthy: JudgedRun) -> None:
    first = healthy.records[0]
    groups = {"generator": {**first.groups["generator"], "rollout.refused": Stat(24, 1.0)}}
    run = replace(healthy, records=(replace(first, groups=groups), *healthy.records[1:]))
    assert any("comparison 'rollout' refused for 24 answers" in one for one in data.remarks(run))


def test_live_and_replayed_alerts_are_compared(failing: JudgedRun) -> None:
    assert not [one for one in data.remarks(failing) if "differ" in one]
    deaf = replace(failing, live_alerts=())
    assert any("only in the replay" in one for one in data.remarks(deaf))


def test_cost_is_a_share_of_wall_time(healthy: JudgedRun) -> None:
    texts = [block.text for block in data.build(healthy).blocks if isinstance(block, Prose)]
    # 40 records of 13 ms in 39 minutes.
    assert texts == ["Watching cost 0.52 s in 40 records, 0.0222 % of 2,340 s of wall time."]
