"""The price table: relative length of a training step by tier and interval.

Reads what `token_statistics` and `role_gradients` measured and computes, for a measurement that is
taken every k-th step, `1 + (its step + (k - 1) * idle step) / k`. Prints the table and draws it.
"""

from __future__ import annotations

import json
from pathlib import Path

OUT = Path(__file__).parent / "out"
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "price.png"
INTERVALS = (1, 4, 16, 64)
_IDLE = "tap fold, a step not measured"
_TIERS = {
    "economy: token statistics": None,
    "business: and role gradients, tap": "tap fold, mixed micro-batches",
    "business: one role per micro-batch": "tap fold, one group per micro-batch",
    "business: role-ordered micro-batches": "role-ordered fold",
}


def rows() -> dict[str, dict[str, list[float]]]:
    """Model -> tier -> relative step length per interval."""
    tokens = json.loads((OUT / "token_statistics.json").read_text())["results"]
    share = {"tiny": tokens[0]["inside_share"], "mid": tokens[-1]["inside_share"]}
    table: dict[str, dict[str, list[float]]] = {}
    for result in json.loads((OUT / "role_gradients.json").read_text())["results"]:
        base = share.get(result["name"].split()[0], 0.0)
        over = result["overhead"]
        table[result["name"]] = {
            tier: [
                1 + base + (0.0 if name is None else (over[name] + (k - 1) * over[_IDLE]) / k)
                for k in INTERVALS
            ]
            for tier, name in _TIERS.items()
        }
    return table


def draw(table: dict[str, dict[str, list[float]]]) -> None:
    """One panel per model: relative step length against the interval."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.1 * len(table), 3.2), layout="constrained")
    for axes, (name, tiers) in zip(
        figure.subplots(1, len(table), squeeze=False)[0], table.items(), strict=True
    ):
        for tier, values in tiers.items():
            axes.plot(INTERVALS, values, marker="o", label=tier)
        axes.axhline(1.02, color="0.6", linestyle="--", linewidth=0.8)
        axes.set(title=name, xscale="log", xlabel="measured every k steps")
        axes.set_xticks(INTERVALS, [str(k) for k in INTERVALS])
        axes.minorticks_off()
    figure.axes[0].set_ylabel("step, watched / plain")
    figure.axes[0].legend(fontsize=6, frameon=False)
    PICTURE.parent.mkdir(exist_ok=True)
    FigureCanvasAgg(figure).print_png(PICTURE)


def main() -> None:
    table = rows()
    for name, tiers in table.items():
        print(f"| {name} | " + " | ".join(f"every {k}" for k in INTERVALS) + " |")
        print("|---|" + "---|" * len(INTERVALS))
        for tier, values in tiers.items():
            print(f"| {tier} | " + " | ".join(f"{value:.3f}" for value in values) + " |")
        print()
    draw(table)
    print(PICTURE)


if __name__ == "__main__":
    main()
