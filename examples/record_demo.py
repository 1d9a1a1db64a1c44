"""Record the run that `roledrift demo` shows: the verbose run of `make demo`, without its clock.

What was measured stays as it came out of training, to five digits. Times, costs, versions and the
name of the process are left out, and to stay small so are statistics of single slots and the texts
of two steps in three; paths begin with the name of the run. Recording the same run again gives the
same bytes.
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import replace
from pathlib import Path

from roledrift import open_run
from roledrift.store.writer import RunWriter

ROOT = Path(__file__).parents[1]
HOME = ROOT / "roledrift" / "report" / "demo_run"


def rounded(value: object) -> object:
    """JSON values with numbers to five digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", default=str(ROOT / "runs/demo/voting-sp-verbose"))
    source = Path(parser.parse_args().run)
    run = open_run(source)
    shutil.rmtree(HOME, ignore_errors=True)
    header = replace(run.header, created="", versions={})
    writer = RunWriter(HOME, header, writer="demo")
    samples = run.samples()
    for record in run.steps():
        groups = {name: stats for name, stats in record.groups.items() if "/" not in name}
        writer.write_step(replace(record, groups=groups, time="", cost_ms={}))
        texts = [sample for sample in samples if sample.step == record.step]
        if texts and record.step % 3 == 0:
            writer.write_samples(record.step, texts)
    for alert in run.alerts:
        writer.write_alert(replace(alert, time=""))
    writer.close()
    for file in HOME.glob("steps.*.jsonl"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line.pop("time", None)
        lines = [rounded(line) for line in lines]
        file.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    for file in HOME.glob("*.jsonl"):
        file.write_text(file.read_text().replace(str(source.resolve()), source.name))


if __name__ == "__main__":
    main()
