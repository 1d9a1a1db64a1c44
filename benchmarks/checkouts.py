"""A figure of this checkout beside that of another one, measured in turns."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

HERE = Path(__file__).parents[1]
OUT = Path(__file__).parent / "out"


def compare(
    figure: str, measure: Callable[[Path], float], *, target: float, rounds: int, about: str
) -> None:
    """Print medians over rounds, and write them to ``benchmarks/out/<figure>.json``.

    Args:
        figure: What is measured, with its unit.
        measure: Measures it once with the code of a checkout.
        target: What is wanted.
        rounds: Measurements of each checkout, in turns.
        about: Text of ``--help``.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--against", type=Path, help="another checkout of this project")
    # From `python -m benchmarks` the options are somebody else's.
    own = Path(sys.argv[0]).stem != "__main__"
    options = parser.parse_args(sys.argv[1:] if own else [])
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(measure(HERE))
        if options.against is not None:
            theirs.append(measure(options.against.resolve()))
    figures = {figure: median(ours), "target": target}
    if theirs:
        figures |= {"against": median(theirs), "ratio": median(ours) / median(theirs)}
    for name, value in figures.items():
        print(f"{name:>22}  {value:7.2f}")
    OUT.mkdir(exist_ok=True)
    (OUT / f"{figure}.json").write_text(json.dumps(figures, indent=1) + "\n")
