"""Record the run that `roledrift demo` shows: examples/own_loop.py, once, without clock and cost.

What was measured stays as it came out of training. Times, costs, versions and the name of the
process are left out, so that recording again gives the same bytes.
"""

from __future__ import annotations

import json
import runpy
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from roledrift import open_run
from roledrift.store.writer import RunWriter

HOME = Path(__file__).parents[1] / "roledrift" / "report" / "demo_run"


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        recorded = Path(scratch) / "own-loop"
        sys.argv = ["own_loop.py", "--out", str(recorded)]
        runpy.run_path(str(Path(__file__).with_name("own_loop.py")), run_name="__main__")
        run = open_run(recorded)
        shutil.rmtree(HOME, ignore_errors=True)
        header = replace(run.header, run="own-loop", created="", versions={})
        writer = RunWriter(HOME, header, writer="demo")
        for record in run.steps():
            writer.write_step(replace(record, time="", cost_ms={}))
        for alert in run.alerts():
            writer.write_alert(replace(alert, time=""))
        writer.close()
    for file in HOME.glob("steps.*.jsonl"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line.pop("time", None)
        file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


if __name__ == "__main__":
    main()
