"""The figures of ``docs/reproduction.md``, drawn from the results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.reproduction.deciding import Answer, Found
from benchmarks.reproduction.measures import Results, first_movement
from benchmarks.reproduction.outcomes import Row
from benchmarks.reproduction.plan import Claim

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"sp": "#b5482a", "ip": "#2a6fb5"}
_ANSWERS = {"holds": "#2a8a4a", "does not hold": "#b5482a", "cannot tell": "#808080"}
_WIDEST = 4.0


def draw_all(
    folder: Path, results: Results, decided: Sequence[tuple[Claim, Answer, Sequence[Found]]]
) -> list[str]:
    """Write the figures for which there are results; their file names."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "roledrift",
            "svg.fonttype": "none",
            "font.size": 8,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, draw in (("terse", _terse), ("accuracy", _accuracy), ("optimizer", _optimizer)):
        figure = draw(results)
        if figure is not None:
            _save(figure, folder / f"{name}.svg")
            drawn.append(f"{name}.svg")
    _save(_forest(decided), folder / "tests.svg")
    return [*drawn, "tests.svg"]


def _save(figure: Any, file: Path) -> None:
    figure.savefig(file, metadata={"Date": None}, bbox_inches="tight")
    import matplotlib.pyplot as plt

    plt.close(figure)


def _panels(count: int, height: float = 2.1) -> tuple[Any, list[Axes]]:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, count, figsize=(2.4 * count, height), squeeze=False, sharey=True)
    return figure, list(axes[0])


def _rows(results: Results, place: str) -> list[Row]:
    return [row for (name, _, _), row in sorted(results.rows.items()) if name == place]


def _lines(axes: Axes, series: Iterable[Sequence[float]], *, colour: str, label: str) -> None:
    """Every run as a thin line, their mean as a thick one."""
    table = [list(run) for run in series]
    if not table:
        return
    steps = range(1, len(table[0]) + 1)
    for run in table:
        axes.plot(steps, run, color=colour, lw=0.5, alpha=0.4)
    mean = np.asarray(table, dtype=np.float64).mean(0)
    axes.plot(steps, mean, color=colour, lw=1.8, label=f"{label} (n={len(table)})")


def _terse(results: Results) -> Any:
    names = [name for name in ("leakage", "capture", "parser") if _rows(results, f"{name}/sp")]
    if not names:
        return None
    titles = {
        "leakage": "own rows left out",
        "capture": "nothing left out",
        "parser": "lenient parser",
    }
    figure, panels = _panels(len(names))
    for axes, name in zip(panels, names, strict=True):
        for arm, label in (("sp", "shared"), ("ip", "isolated")):
            series = [
                row["roles"]["aggregator"]["terse"] for row in _rows(results, f"{name}/{arm}")
            ]
            _lines(axes, series, colour=_COLOURS[arm], label=label)
        axes.set(title=titles[name], xlabel="iteration", ylim=(-0.03, 1.03))
        axes.legend(frameon=False, fontsize=6)
    panels[0].set_ylabel("aggregator: terse outputs")
    return figure


def _accuracy(results: Results) -> Any:
    arms = {
        "steps/slots3-steps3": "3 slots, 3 steps",
        "steps/slots1-steps3": "1 slot, 3 steps",
        "steps/slots3-steps1": "3 slots, 1 step",
        "steps/slots1-steps1": "1 slot, 1 step",
    }
    if not all(_rows(results, arm) for arm in arms):
        return None
    figure, panels = _panels(4)
    for axes, (arm, title) in zip(panels, arms.items(), strict=True):
        colour = _COLOURS["sp" if arm.endswith("3") else "ip"]
        _lines(axes, [row["accuracy"] for row in _rows(results, arm)], colour=colour, label="runs")
        axes.set(title=title, xlabel="iteration", ylim=(-0.03, 1.03))
        axes.legend(frameon=False, fontsize=6)
    panels[0].set_ylabel("training accuracy")
    return figure


def _optimizer(results: Results) -> Any:
    arms = ("sgd-1", "sgd-3", "sgd-1-lr3", "adam-1", "adam-3")
    values = {
        arm: [
            value
            for row in _rows(results, f"optimizer/{arm}")
            if (value := first_movement(row)) is not None
        ]
        for arm in arms
    }
    if not all(values.values()):
        return None
    figure, (axes,) = _panels(1)
    figure.set_size_inches(4.4, 2.1)
    for place, arm in enumerate(arms):
        points = [math.exp(value) for value in values[arm]]
        axes.plot([place] * len(points), points, "o", ms=3, alpha=0.6, color="#2a6fb5")
    names = ["SGD\n1 slot", "SGD\n3 slots", "SGD, 1 slot\n3x rate"]
    axes.set_xticks(range(len(arms)), [*names, "AdamW\n1 slot", "AdamW\n3 slots"])
    axes.set(yscale="log", ylabel="k3 of the first update")
    return figure


def _forest(decided: Sequence[tuple[Claim, Answer, Sequence[Found]]]) -> Any:
    """Every test's estimate and interval in units of its delta; deciding ones filled."""
    import matplotlib.pyplot as plt

    rows = [
        (claim.name, number, result)
        for claim, _, tests in decided
        for number, result in enumerate(tests, start=1)
        if result.estimate is not None
        and result.test.delta
        and np.isfinite([result.low, result.high]).all()
    ]
    figure, axes = plt.subplots(figsize=(5.4, 0.4 + 0.17 * max(1, len(rows))))
    for place, (_, _, result) in enumerate(rows):
        assert result.estimate is not None
        ends = np.array([result.low, result.estimate, result.high]) / result.test.delta
        low, middle, high = np.clip(ends, -_WIDEST, _WIDEST).tolist()
        colour = _ANSWERS[result.answer]
        axes.plot([low, high], [place, place], color=colour, lw=1.2)
        face = colour if result.test.decides else "white"
        # Beyond the edge a triangle points to where the estimate is.
        mark = ("<" if middle < 0 else ">") if abs(middle) >= _WIDEST else "o"
        axes.plot([middle], [place], mark, ms=4, color=colour, markerfacecolor=face, clip_on=False)
    axes.axvline(0, color="#b0b0b0", lw=0.7)
    for delta in (-1, 1):
        axes.axvline(delta, color="#b0b0b0", lw=0.7, ls=":")
    axes.set_yticks(range(len(rows)), [f"{name} {number}" for name, number, _ in rows])
    axes.invert_yaxis()
    axes.set(
        xlabel="estimate and 95 % interval, in units of the smallest difference of interest",
        xlim=(-_WIDEST, _WIDEST),
    )
    return figure
