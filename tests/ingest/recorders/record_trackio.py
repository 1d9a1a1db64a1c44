"""trackio's database of a project with two runs, by trackio itself.

After `make test-logbooks`, from the root:
`PYTHONPATH=. .venv-logbooks/bin/python tests/ingest/recorders/record_trackio.py`
"""

import gzip
import os
import tempfile
from importlib.metadata import version
from pathlib import Path

# Before trackio is imported, which reads these once.
os.environ["TRACKIO_DIR"] = tempfile.mkdtemp()
os.environ["HF_HUB_OFFLINE"] = "1"

import trackio
from written import fresh, written


def main() -> None:
    target = fresh("trackio")
    for name in ("brave-fox", "calm-owl"):
        trackio.init(project="grpo", name=name, config={"seed": 7}, embed=False)
        for step in range(1, 13):
            reward = 0.05 * step if name == "brave-fox" else 0.5
            trackio.log(
                {"train/reward": reward, "train/grad_norm": 0.3, "train/global_step": 10 * step}
            )
        trackio.finish()
    (target / "grpo.db.gz").write_bytes(
        gzip.compress(Path(os.environ["TRACKIO_DIR"], "grpo.db").read_bytes(), mtime=0)
    )
    written("trackio", f"trackio {version('trackio')}", "init, log, finish; made-up numbers")


if __name__ == "__main__":
    main()
