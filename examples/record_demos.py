"""Keep recorded runs of the detection benchmark as demos: `roledrift demo NAME`.

Only runs that the detectors were built on are shown, never the unseen seeds. The outcome of
validations, texts of three steps and all statistics are kept; paths of checkpoints are left out.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

from benchmarks.detection.recordings import load, rounded
from roledrift.codec import plain
from roledrift.records import RunHeader
from roledrift.store.columns import pack

HOME = Path(__file__).parents[1] / "roledrift" / "report" / "demo_runs"

RECORDINGS = {
    "reward-hacking": ("weak-sp-verbose", 0, None),
    "role-capture": ("capture-sp-lenient", 21, 1),
    "hot-learning-rate": ("voting-ip-hot", 10, None),
    "wrong-adapter": ("voting-ip-unserved", 0, None),
    "truncation": ("single-noise", 10, None),
    "solved-task": ("capture-ip", 21, 1),
    "healthy": ("voting-ip", 0, None),
}
"""Name of the demo to scenario, seed and base of its recording."""


def main() -> None:
    HOME.mkdir(exist_ok=True)
    for name, (scenario, seed, base) in RECORDINGS.items():
        run = load(scenario, seed, base=base)
        header = RunHeader(
            name, run.workflow, host="reference_trainer", task="math", scale="tiny", seed=seed,
            config=run.config, notes={"recording": f"{scenario} of the detection benchmark"},
        )  # fmt: skip
        steps = [plain(rounded(step)) for step in run.steps]
        body = {
            "header": plain(header),
            "steps": pack(steps),
            "samples": [plain(sample) for sample in run.samples],
        }
        text = json.dumps(body, separators=(",", ":"), allow_nan=False)
        packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
        (HOME / f"{name}.json.xz").write_bytes(packed)
        print(f"{name}: {len(packed):,} bytes")


if __name__ == "__main__":
    main()
