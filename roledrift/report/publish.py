"""Log a run's report to wandb, trackio, mlflow or TensorBoard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from roledrift.notify.logbooks import log_folder
from roledrift.report.build import build_report
from roledrift.report.write import write_report


def log_report(
    run: Path | str | Sequence[Path | str],
    *,
    name: str = "",
    out: Path | str | None = None,
    writer: Any = None,
) -> tuple[str, ...]:
    """Write the report of a run and log it wherever the program has an experiment run open.

    A log counts if the program has imported it and has a run open; nothing is started.

    Args:
        run: Run directory, or several.
        name: Of the artifact; empty for ``roledrift-<run>``.
        out: Where the report is kept; None for a temporary folder.
        writer: TensorBoard ``SummaryWriter`` that gets the report's Markdown.

    Returns:
        Where it went, of ``wandb``, ``trackio``, ``mlflow`` and ``tensorboard``.

    Raises:
        RoleDriftError: If the run cannot be read or the report not be written.
    """
    first = run if isinstance(run, Path | str) else run[0]
    name = name or f"roledrift-{Path(first).resolve().name}"
    report = build_report(run)
    if out is not None:
        write_report(report, out)
        return log_folder(Path(out), name, writer=writer)
    with TemporaryDirectory(prefix="roledrift-report-") as folder:
        write_report(report, folder)
        return log_folder(Path(folder), name, writer=writer)
