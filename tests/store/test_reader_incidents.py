"""Incidents of a run, as they were stored."""

from pathlib import Path

from roledrift.codec import to_json
from roledrift.store.reader import open_run
from roledrift.store.writer import RunWriter
from tests.store.records import HEADER, alert, incident, step


def write(path: Path, numbers: range, **options: object) -> RunWriter:
    writer = RunWriter(path, HEADER, resume=True, **options)  # type: ignore[arg-type]
    for number in numbers:
        writer.write_step(step(number))
    return writer


def test_the_latest_state_of_an_incident_counts_and_the_worst_comes_first(tmp_path: Path) -> None:
    first = write(tmp_path, range(6))
    first.write_incident(incident(2, onset=1, severity="suspicious"))
    first.write_incident(incident(3, onset=3, severity="suspicious"))
    first.write_incident(incident(5, onset=3, sentence="Of a step that was replayed."))
    second = write(tmp_path, range(5, 8))
    second.write_incident(incident(6, onset=3, severity="failing"))
    found = open_run(tmp_path).incidents()
    assert [(one.step, one.onset, one.severity) for one in found] == [
        (6, 3, "failing"),
        (2, 1, "suspicious"),
    ]
    second.write_incident(incident(7, onset=3, state="closed"))
    assert [one.onset for one in open_run(tmp_path).incidents()] == [1, 3]


def test_a_run_from_before_incidents_has_none_and_a_broken_line_costs_that_line(
    tmp_path: Path,
) -> None:
    write(tmp_path, range(3), writer="w").write_alert(alert(2))
    run = open_run(tmp_path)
    assert (run.incidents(), run.judged) == ((), False)
    body = to_json(incident(2)).replace('"failing"', '"dreadful"')
    (tmp_path / "incidents.w.jsonl").write_text(f"{body}\n{to_json(incident(2))}\n")
    run = open_run(tmp_path)
    assert (run.incidents(), run.judged) == ((incident(2),), True)
    (problem,) = run.problems
    assert "incidents.w.jsonl:1" in problem
    assert "dreadful" in problem
