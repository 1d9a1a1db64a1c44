from __future__ import annotations

import struct
from dataclasses import replace

from roledrift.report.draw.status_image import status_image
from roledrift.report.model import Report


def test_one_picture_of_a_run_with_the_same_bytes(failing_report: Report) -> None:
    first = status_image(failing_report)
    assert first.startswith(b"\x89PNG")
    assert struct.unpack(">II", first[16:24]) == (1600, 1200)
    assert status_image(failing_report) == first


def test_a_run_without_anything_and_many_runs_get_one_too(failing_report: Report) -> None:
    run = failing_report.runs[0]
    for runs in ((replace(run, sections=()),), (run,) * 20):
        assert status_image(replace(failing_report, runs=runs)).startswith(b"\x89PNG")
