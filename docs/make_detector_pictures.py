"""The pictures of `docs/detectors`: a recorded failure beside the healthy run that it began as."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.detection.recordings import Recording, load
from benchmarks.detection.suite import load_suite
from roledrift import replay
from roledrift.config import BaselineConfig
from roledrift.report.palette import TONES

IMAGES = Path(__file__).parent / "images" / "detectors"
HEALTHY, FAILING = TONES[0].light, TONES[1].light
LOGARITHMIC = ("update.k3",)


@dataclass(frozen=True)
class Picture:
    """One picture.

    Attributes:
        detector: Whose page it is for.
        role: Role that is shown; `*` for the run.
        statistic: What is drawn; `total:` before a number of the whole step.
        words: Label of the axis.
        failing: Scenario and seed.
        healthy: Scenario and seed.
    """

    detector: str
    role: str
    statistic: str
    words: str
    failing: tuple[str, int]
    healthy: tuple[str, int]


PICTURES = (
    Picture(
        "length_inflation",
        "aggregator",
        "length",
        "tokens per answer",
        ("weak-sp-verbose", 11),
        ("weak-sp", 11),
    ),
    Picture(
        "sp_role_capture",
        "aggregator",
        "bare_stamp",
        "share of bare stamps",
        ("weak-sp-verbose", 10),
        ("weak-sp", 10),
    ),
    Picture(
        "gradient_amplification",
        "generator",
        "update.k3",
        "update.k3, nats per token",
        ("voting-ip-hot", 10),
        ("voting-ip", 10),
    ),
    Picture(
        "policy_drift",
        "generator",
        "update.k3",
        "update.k3, nats per token",
        ("single-noise", 11),
        ("single", 11),
    ),
    Picture(
        "hygiene",
        "generator",
        "duplicates",
        "share of rows that are there twice",
        ("voting-ip-duplicates", 10),
        ("voting-ip", 10),
    ),
    Picture(
        "accuracy_cliff",
        "*",
        "total:val_accuracy",
        "validation accuracy",
        ("voting-ip-hot", 10),
        ("voting-ip", 10),
    ),
    Picture(
        "entropy_collapse",
        "aggregator",
        "entropy",
        "entropy, nats per token",
        ("voting-ip-hot", 10),
        ("voting-ip", 10),
    ),
    Picture(
        "diversity_collapse",
        "generator",
        "wrong_agreement",
        "wrong siblings that agree",
        ("voting-ip-hot", 10),
        ("voting-ip", 10),
    ),
    Picture(
        "lazy_role",
        "aggregator",
        "openers",
        "different openings",
        ("voting-ip-hot", 10),
        ("voting-ip", 10),
    ),
    Picture(
        "echo_trap",
        "aggregator",
        "reward_spread",
        "spread of rewards in a group",
        ("voting-ip-hot", 10),
        ("voting-ip", 10),
    ),
)


def values(recording: Recording, picture: Picture) -> tuple[list[int], list[float]]:
    """The steps at which the statistic was measured, and its values."""
    kind, _, name = picture.statistic.partition(":")
    if name == "val_accuracy":
        return list(recording.validation), list(recording.validation.values())
    pairs = [
        (one.step, one.totals.get(name) if kind == "total" else one.mean(picture.role, kind))
        for one in recording.steps
    ]
    known = [(step, value) for step, value in pairs if value is not None and not math.isnan(value)]
    return [step for step, _ in known], [value for _, value in known]


def band(recording: Recording, picture: Picture) -> tuple[float, float] | None:
    """Range of the baseline's records; None where the statistic is not measured in every step."""
    baseline = BaselineConfig(**recording.config["baseline"])
    _, drawn = values(recording, picture)
    first = drawn[baseline.skip : baseline.skip + baseline.window]
    if len(drawn) < len(recording.steps) / 2:
        return None
    return min(first), max(first)


def draw(axes: Axes, picture: Picture, *, onset: int) -> None:
    """Both runs, the band, the onset, and where the panel spoke."""
    failing, healthy = load(*picture.failing), load(*picture.healthy)
    for recording, colour, dashes, label in (
        (healthy, HEALTHY, "--", f"healthy ({picture.healthy[0]})"),
        (failing, FAILING, "-", f"failing ({picture.failing[0]})"),
    ):
        steps, drawn = values(recording, picture)
        axes.plot(steps, drawn, dashes, color=colour, lw=1.6, label=label)
    expected = band(failing, picture)
    if expected is not None:
        axes.axhspan(*expected, color="#888888", alpha=0.15, lw=0, label="range of the baseline")
    axes.axvline(onset, color="#666666", lw=1, ls=":", label="stress begins")
    steps, drawn = values(failing, picture)
    for alert in replay(failing.steps, failing.workflow).alerts:
        if alert.detector != picture.detector or alert.state != "open":
            continue
        nearest = min(range(len(steps)), key=lambda i: abs(steps[i] - alert.step))
        axes.plot(
            [alert.step],
            [drawn[nearest]],
            "v",
            ms=9,
            color="black",
            label=f"{alert.level} {alert.finding} ({alert.role})",
        )
    if picture.statistic in LOGARITHMIC:
        axes.set_yscale("log")
    axes.set_xlabel("iteration")
    axes.set_ylabel(f"{picture.words}\n({picture.role})" if picture.role != "*" else picture.words)
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.spines[["top", "right"]].set_visible(False)


def main() -> int:
    IMAGES.mkdir(parents=True, exist_ok=True)
    onset = load_suite().onset
    for picture in PICTURES:
        figure, axes = plt.subplots(figsize=(8.0, 2.8), dpi=110, layout="constrained")
        draw(axes, picture, onset=onset)
        path = IMAGES / f"{picture.detector}.png"
        figure.savefig(path, metadata={"Software": ""})
        plt.close(figure)
        print(path, path.stat().st_size)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
