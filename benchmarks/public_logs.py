"""``python -m benchmarks.public_logs``: judge public logs of real GRPO runs.

The logs stay where they are published; only their addresses are kept here. Each is fetched into a
temporary folder (or read from ``--folder``, with clones of the repositories) and judged.
"""

from __future__ import annotations

import argparse
import tempfile
import urllib.request
from pathlib import Path

from roledrift.cli.check import check_run
from roledrift.ingest import sniff
from roledrift.ingest.importing import import_run, job_for
from roledrift.store.reader import open_run

_DYNAMICS = ("Sunshine535/nips-grpo-dynamics", "2cd2efce1c0622bfd77899c555357107706a0c54")
_SWEEP = "results/qwen35/sweep_coarse/rho{}_seed{}/step_logs.json"
_RUNS = (
    *(("0.10", 42), ("0.70", 42), ("0.70", 43), ("0.70", 44), ("1.00", 42)),
    *(("1.00", 43), ("1.00", 44), ("3.00", 42), ("3.00", 43), ("3.00", 44)),
)
_CHECKPOINT = "outputs/checkpoint-250/trainer_state.json"
LOGS = (
    *((*_DYNAMICS, _SWEEP.format(*run)) for run in _RUNS),
    (*_DYNAMICS, "results/qwen35/variants/dapo_rho1.0_seed42/step_logs.json"),
    (*_DYNAMICS, "results/qwen35/variants/dapo_rho1.0_seed43/step_logs.json"),
    (*_DYNAMICS, "results/qwen35/variants/dapo_rho3.0_seed42/step_logs.json"),
    ("IMJONEZZ/UnslothGRPO", "d466910615313226683d1057c06ad35dedfd0b4f", _CHECKPOINT),
    ("abdo-ashraf/Gemma-3-RL-Finetuning", "23ecd0b44d4e0bc07cad0b9332f5262e978ccff7", _CHECKPOINT),
)
"""Repository, commit and path of each log."""


def verdict(log: Path) -> str:
    """Outcome and findings of one log, as a row of a table."""
    with tempfile.TemporaryDirectory() as folder:
        import_run(sniff(log), job_for(log), Path(folder) / "run")
        checked = check_run(open_run(Path(folder) / "run"))
    findings = ", ".join(
        f"`{finding.finding}` since {finding.since}" for finding in checked.findings
    )
    return f"{checked.steps} | {checked.outcome} | {findings}"


def main() -> None:
    """Print a table of all logs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="clones of the repositories, by their names")
    given = parser.parse_args()
    print("| run | rows | outcome | findings |\n|---|--:|---|---|")
    for repository, commit, path in LOGS:
        own = path.split("/")[2:4] if "step_logs" in path else [repository.split("/")[1]]
        name = "/".join(own)
        if given.folder is not None:
            log = given.folder / repository.split("/")[1] / path
            print(f"| {name} | {verdict(log)} |", flush=True)
            continue
        address = f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / path.split("/")[-1]
            with urllib.request.urlopen(address, timeout=60) as answer:
                log.write_bytes(answer.read())
            print(f"| {name} | {verdict(log)} |", flush=True)


if __name__ == "__main__":
    main()
