"""Summaries of runs with what the paper's tables read of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from roledrift_paper.measured import measure, of

from roledrift.report.build import build_run
from roledrift.report.judged_run import JudgedRun
from roledrift.report.sweep.summary import Summary, summarise


def summary_of(run: JudgedRun) -> Summary:
    return summarise(run, build_run(run, "x"), measured={"paper": measure(run)})


def remeasured(summary: Summary, **changes: Any) -> Summary:
    return replace(summary, measured={"paper": replace(of(summary), **changes)})
