"""verl's dumps, file logger and console, by verl itself.

`PYTHONPATH=. .venv-verl/bin/python tests/ingest/recorders/record_verl.py` from the root, after
`make test-verl`: verl's own fit() with rollout_data_dir and the loggers console and file, on the
tests' model of one vector. What the older trainer writes comes from verl's writer alone, called as
that trainer calls it.
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from written import fresh, written

WORDS = [
    *("<pad>", "<eos>", "What", "is", "two", "plus", "three", "?", "Solution", "1:", "2:", "so"),
    *("we", "get", "and", "then", "\\boxed{5}", "\\boxed{6}", "\\boxed{1}", "\\boxed{2}"),
]
ANSWERS = {"generator": ("\\boxed{5}", "\\boxed{6}"), "aggregator": ("\\boxed{1}", "\\boxed{2}")}


class Tokenizer:
    eos_token_id, pad_token_id = 1, 0

    def decode(self, ids: Any, skip_special_tokens: bool = False) -> str:
        return " ".join(WORDS[int(one)] for one in ids if int(one) > 1 or not skip_special_tokens)


def settings(folder: Path, checkpoints: str) -> Any:
    """verl's own configuration, but for the sizes and where things are written."""
    import verl
    from omegaconf import OmegaConf

    from tests.envs.verl.conftest import WIDTH

    config: Any = OmegaConf.load(
        Path(str(verl.__file__)).parent / "trainer/config/_generated_ppo_trainer.yaml"
    )
    OmegaConf.set_struct(config, False)
    config.data.max_response_length = WIDTH
    config.data.train_batch_size = 2
    config.actor_rollout_ref.rollout.merge_with(
        {"temperature": 0.7, "calculate_log_probs": True, "name": "vllm", "n": 4}
    )
    config.actor_rollout_ref.actor.ppo_mini_batch_size = 8
    config.algorithm.adv_estimator = "grpo"
    config.trainer.merge_with(
        {
            "default_local_dir": checkpoints,
            "logger": ["console", "file"],
            "test_freq": 2,
            "save_freq": -1,
            "total_epochs": 99,
            "resume_mode": "disable",
            "rollout_data_dir": str(folder),
        }
    )
    return config


def v1(folder: Path, steps: int) -> str:
    """The V1 trainer's run; the version of verl."""
    import ray
    import transfer_queue as tq
    import verl
    from omegaconf import OmegaConf
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer
    from verl.utils import tensordict_utils as tu

    from tests.envs.verl.conftest import ROLES
    from tests.envs.verl.test_v1 import Trainer, jagged

    class Dumping(Trainer):
        _shutdown_dump_executor = PPOTrainer._shutdown_dump_executor

        def __init__(self, config: Any, steps: int) -> None:
            super().__init__(config, steps)
            self.tokenizer = Tokenizer()
            self._init_dump_executor()
            sample = self.replay_buffer.sample
            self.replay_buffer.sample = lambda **asked: worded(*sample(**asked))

    def worded(batch: Any, more: Any) -> Any:
        """The rows with a question, a last word that answers it and the reference answer."""
        data = tq.kv_batch_get(batch.keys, batch.partition_id, ["responses", "rm_scores"])
        prompts, responses = [], []
        scores = data["rm_scores"].unbind()
        for row, ids in enumerate(data["responses"].unbind()):
            role = ROLES[row % len(ROLES)]
            wrong = int(scores[row].sum() == 0)
            ids = ids.clamp(12, 16)
            ids[-1] = WORDS.index(ANSWERS[role][wrong])
            asked = "What is two plus three ?" + (" Solution 1:" if role == "aggregator" else "")
            prompts.append(ids.new_tensor([WORDS.index(word) for word in asked.split()]))
            responses.append(ids)
        fields = {
            "prompts": jagged(prompts),
            "responses": jagged(responses),
            "reward_model": [{"style": "rule", "ground_truth": "5"}] * len(prompts),
        }
        return tq.kv_batch_put(
            batch.keys, batch.partition_id, fields=tu.get_tensordict(fields)
        ), more

    with tempfile.TemporaryDirectory() as elsewhere:
        config = settings(folder, elsewhere)
        ray.init(num_cpus=2, include_dashboard=False, object_store_memory=80 * 2**20)
        storage = {"num_data_storage_units": 1, "total_storage_size": 1000}
        tq.init(OmegaConf.create({"backend": {"SimpleStorage": storage}}))
        try:
            Dumping(config, steps).fit(agent_loop_manager=None)
        finally:
            tq.close()
            ray.shutdown()
    return str(verl.__version__)


def legacy(folder: Path) -> None:
    """The older trainer's writer, with the columns that a reward function of dicts adds."""
    from concurrent.futures import ThreadPoolExecutor

    from verl.trainer.ppo.ray_trainer import RayPPOTrainer

    stand_in: Any = SimpleNamespace(_dump_executor=ThreadPoolExecutor(1), _dump_futures=[])
    stand_in._write_generations = RayPPOTrainer._write_generations
    for step in (1, 2):
        stand_in.global_steps = step
        outputs = ["so \\boxed{5}", "so \\boxed{6}", "\\boxed{1}"] * 2
        RayPPOTrainer._dump_generations(
            stand_in,
            inputs=["What is two plus three ?"] * 6,
            outputs=outputs,
            gts=["5"] * 6,
            scores=[1.0, 0.0, 1.0] * 2,
            reward_extra_infos_dict={
                "acc": [True, False, True] * 2,
                "role": ["generator", "generator", "aggregator"] * 2,
                "lengths": [1, 2],  # of another length: verl leaves it out
            },
            dump_path=str(folder),
        )
    RayPPOTrainer._shutdown_dump_executor(stand_in)


def main() -> None:
    folder = fresh("verl")
    os.environ["VERL_FILE_LOGGER_PATH"] = str(folder / "p-e.jsonl")
    with (folder / "run.log").open("w") as log, contextlib.redirect_stdout(log):
        version = v1(folder, steps=4)
    kept = [
        line
        for line in (folder / "run.log").read_text().splitlines(keepends=True)
        if line.startswith(("step:", "Dumped"))
    ]
    (folder / "run.log").write_text("".join(kept).replace(str(folder), "rollout_data"))
    legacy(fresh("verl-legacy"))
    written("verl", f"verl {version}", "PPOTrainer.fit with rollout_data_dir, logger console, file")
    written("verl-legacy", f"verl {version}", "RayPPOTrainer._dump_generations")


if __name__ == "__main__":
    sys.exit(main())
