"""One of two processes of test_trl_runs.py, which make two trainings."""

import io
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from roledrift_trl import RoleDriftCallback

from tests.integrations.trl_tiny import PAIR, make_trainer, scripted
from tests.ranks import as_rank


def main(what: str, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    config: dict[str, Any] = {"rescore": {"rows_per_role": 8}}
    changes: dict[str, Any] = {"ddp_backend": "gloo"}
    if what == "grows":
        config |= {"stop_on": ["length_inflation"], "baseline": {"window": 4}, "budget": 0.0}
        changes |= {"max_steps": 40, "per_device_train_batch_size": 16}
    callback = RoleDriftCallback(PAIR, folder / "run", config=config)

    def length(role: str, step: int) -> int:
        rank = trainer.accelerator.process_index
        return 7 if rank == 1 and role == "aggregator" and step >= 6 else 3

    if what == "grows":
        changes["rollout_func"] = scripted(length)
    trainer = make_trainer(folder, [callback], **changes)
    trainer.train()
    done = folder / f"rank-{trainer.accelerator.process_index}"
    done.write_text(str(trainer.state.global_step))


def trained(rank: int, port: int, folder: Path) -> str:
    """Both trainings, one after the other; what was said on standard error."""
    as_rank(rank, port)
    with redirect_stderr(io.StringIO()) as said:
        for name in ("plain", "grows"):
            main(name, folder / name)
    return said.getvalue()
