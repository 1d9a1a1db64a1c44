"""The pictures of `docs/detectors`: recorded runs of the detection benchmark, failing beside healthy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.detection.panel_runs import replayed
from benchmarks.detection.recordings import Recording, load
from benchmarks.detection.suite import load_suite
from roledrift.detect.baseline import LENGTH, MOVEMENT, SHARE, Scale, baseline_of
from roledrift.report.palette import OKABE_ITO

IMAGES = Path(__file__).parent / "images" / "detectors"


@dataclass(frozen=True)
class Picture:
    """One picture.

    Attributes:
        detector: Whose page it is for.
        role: Role that is shown; ``*`` for the run.
        statistic: What is drawn; ``total:`` before a number of the whole step.
        scale: On which the baseline's band is computed.
        words: Label of the axis.
        failing: Scenario and seed.
        healthy: Scenario and seed.
    """

    detector: str
    role: str
    statistic: str
    scale: Scale
    words: str
    failing: tuple[str, int]
    healthy: tuple[str, int]


PICTURES: tuple[Picture, ...] = ()


def values(recording: Recording, picture: Picture) -> tuple[list[int], list[float]]:
    kind, _, name = picture.statistic.partition(":")
    pairs = [
        (one.step, one.totals.get(name) if kind == "total" else one.mean(picture.role, kind))
        for one in recording.steps
    ]
    known = [(step, value) for step, value in pairs if value is not None]
    return [step for step, _ in known], [value for _, value in known]
