"""TRL's completions and trainer state, by a real training of a tiny model.

`PYTHONPATH=.:integrations .venv/bin/python tests/ingest/recorders/record_trl.py` from the root.
"""

import os
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["WANDB_MODE"] = "disabled"

import torch
from trl import GRPOConfig, GRPOTrainer
from written import fresh, written

from tests.integrations.trl_tiny import tiny_dataset, tiny_model, tiny_tokenizer


def score(completion_ids: Any, role: Any, copy: Any, log_extra: Any, **_: Any) -> list[float]:
    log_extra("role", list(role))
    log_extra("slot", [int(one) for one in copy])
    return [float(sum(i % 3 == 0 for i in ids)) for ids in completion_ids]


def main() -> None:
    torch.set_num_threads(1)
    folder = fresh("trl")
    with tempfile.TemporaryDirectory() as elsewhere:
        out = Path(elsewhere)
        trainer = GRPOTrainer(
            model=tiny_model(),
            train_dataset=tiny_dataset(),
            processing_class=tiny_tokenizer(),
            reward_funcs=score,
            args=GRPOConfig(
                output_dir=str(out),
                per_device_train_batch_size=16,
                num_generations=4,
                max_completion_length=6,
                max_steps=4,
                logging_steps=1,
                save_steps=4,
                log_completions=True,
                report_to=[],
                use_cpu=True,
                bf16=False,
                seed=0,
            ),
        )
        trainer.train()
        (folder / "checkpoint-4").mkdir(parents=True)
        shutil.copytree(out / "completions", folder / "completions")
        shutil.copy(out / "checkpoint-4" / "trainer_state.json", folder / "checkpoint-4")
    written("trl", f"TRL {version('trl')}", "GRPOTrainer with log_completions=True")


if __name__ == "__main__":
    main()
