from __future__ import annotations

import struct
from dataclasses import replace

from roledrift.report.model import Bar, Lane, Report, Strip
from roledrift.report.poster import left_out, poster, shown_lanes


def test_one_picture_of_a_run_with_the_same_bytes(failing_report: Report) -> None:
    first = poster(failing_report)
    assert first.startswith(b"\x89PNG")
    assert struct.unpack(">II", first[16:24]) == (1600, 1200)
    assert poster(failing_report) == first


def test_a_run_without_anything_and_many_runs_get_one_too(failing_report: Report) -> None:
    run = failing_report.runs[0]
    for runs in ((replace(run, sections=()),), (run,) * 20):
        assert poster(replace(failing_report, runs=runs)).startswith(b"\x89PNG")


def test_lanes_without_room_are_the_least_important_and_counted() -> None:
    def accused(role: str) -> Lane:
        return Lane(role, (Bar(3, 9, "failing since 3", "failing"),))

    lanes = (Lane("recorded", (Bar(0, 9),)), Lane("validation", ticks=(5,)),
             *(accused(role) for role in "abcd"))  # fmt: skip
    strip = Strip("s", "", "", (0, 9), lanes)
    kept = shown_lanes(strip, 4)
    assert [lane.label for lane in kept] == ["recorded", "a", "b", "c"]
    assert left_out(4, kept) == "+ 1 more alert, on the page"
    assert left_out(12, kept) == "+ 9 more alerts, on the page"
    assert shown_lanes(strip, 9) == lanes
    assert left_out(4, lanes) == ""
