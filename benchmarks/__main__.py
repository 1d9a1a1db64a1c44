"""`python -m benchmarks [name ...]`: run the benchmarks one after another, slowest last."""

from __future__ import annotations

import sys
from importlib import import_module

NAMES = (
    "report_speed",
    "view_speed",
    "ingest_speed",
    "hostile_input",
    "killed_writer",
    "role_gradients",
    "trl_demo",
    "grading_speed",
    "plan_memory",
    "monitor_on_shapes",
    "gpu_iteration",
    "trainer_speed",
)


def main() -> int:
    wanted = sys.argv[1:] or list(NAMES)
    unknown = sorted(set(wanted) - set(NAMES))
    if unknown:
        print(f"no benchmark {unknown}; there are {list(NAMES)}", file=sys.stderr)
        return 2
    for name in wanted:
        print(f"== {name}", flush=True)
        import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
