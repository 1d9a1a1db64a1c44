"""Two processes with an engine each give the iteration of one process with one engine."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

from reference_trainer.config import Config
from reference_trainer.setup import Setup
from reference_trainer.trainer import train
from roledrift import open_run
from tests.reference_trainer.test_parallel import assert_same, records, trace


def test_an_engine_per_process(config: Config, setup: Setup, tmp_path: Path) -> None:
    two = replace(config, train=replace(config.train, steps=2))
    run, source = tmp_path / "two", tmp_path / "two.json"
    source.write_text(json.dumps(asdict(two), default=str))
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    command = ["-m", "reference_trainer", "train", str(source), "--out", str(run)]
    done = subprocess.run(
        [sys.executable, *launcher, *command],
        env=os.environ | {"ROLEDRIFT_STRICT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Traceback" not in done.stderr  # of an engine that outlives its process group
    # One process makes the second iteration again, from what both left after the first.
    alone = tmp_path / "alone"
    shutil.copytree(run, alone)
    shutil.rmtree(alone / "trainer" / "checkpoints" / "global_step_2")
    (alone / "trainer" / "finished.json").unlink()
    result = train(replace(setup, config=two), out=alone, resume=True)
    assert [report.step for report in result.steps] == [2]
    assert_same(trace(run), trace(alone), rel=1e-3)
    assert_same(records(run), records(alone), rel=1e-3)
    texts = [[asdict(one) for one in open_run(where).samples()] for where in (run, alone)]
    assert len(texts[0]) > 10
    assert texts[0] == texts[1]
