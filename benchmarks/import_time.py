"""How long `import roledrift` and `roledrift --help` take, in fresh processes; medians of 10."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

OUT = Path(__file__).parent / "out"
ROUNDS = 10
INSIDE = (
    "import time; t = time.perf_counter(); import roledrift; print((time.perf_counter() - t) * 1e3)"
)


def _inside(code: str) -> float:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _wall(*command: str) -> float:
    begin = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return (time.perf_counter() - begin) * 1e3


def main() -> None:
    cli = str(Path(sys.executable).parent / "roledrift")
    _wall(cli, "--help")
    figures = {
        "import_roledrift_ms": median(_inside(INSIDE) for _ in range(ROUNDS)),
        "bare_python_ms": median(_wall(sys.executable, "-c", "pass") for _ in range(ROUNDS)),
        "help_ms": median(_wall(cli, "--help") for _ in range(ROUNDS)),
    }
    for name, value in figures.items():
        print(f"{name:>22}  {value:7.1f}")
    OUT.mkdir(exist_ok=True)
    (OUT / "import_time.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
