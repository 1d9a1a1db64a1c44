"""Summaries of runs with what the paper's tables read of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from roledrift_paper.measured import measure, of

from roledrift.report.build import build_run
from roledrift.report.sweep.summary import Summary, summarise
from roledrift.report.view import View


def summary_of(view: View) -> Summary:
    return summarise(view, build_run(view, "x"), measured={"paper": measure(view)})


def remeasured(summary: Summary, **changes: Any) -> Summary:
    return replace(summary, measured={"paper": replace(of(summary), **changes)})
