"""tinker-cookbook's rollout summaries and metrics, by its own serialisers, store and logger.

`pip install tinker-cookbook==0.6.1` (with what it asks for) in an environment of its own, then
`python tests/ingest/recorders/record_tinker.py`. The training service is not needed: the
trajectories are made up here, what is computed from them and written is the cookbook's.
"""

import random
from importlib.metadata import version

import tinker
import torch
from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.rl.metric_util import compute_trajectory_metrics
from tinker_cookbook.rl.metrics import compute_kl_sample_train
from tinker_cookbook.rl.rollout_logging import serialize_rollout_summaries
from tinker_cookbook.rl.types import Trajectory, TrajectoryGroup, Transition
from tinker_cookbook.utils.ml_log import JsonLogger
from written import fresh, written

DRAW = random.Random(0)


def transition(length: int, reward: float, stop: str) -> Transition:
    logprobs = [-DRAW.random() for _ in range(length)]
    return Transition(
        ob=tinker.ModelInput.from_ints([1, 2, 3]),
        ac=TokensWithLogprobs(list(range(length)), logprobs),
        reward=reward,
        episode_done=bool(stop),
        metrics={f"stop/{stop}": 1.0, "format": 1.0} if stop else {"format": 1.0},
        logs={"problem": "2+3"},
    )


def group() -> TrajectoryGroup:
    """A game of a solver (0) and a verifier (1), two turns each; the solver is cut off at times."""
    players = []
    for player in range(2):
        cut = player == 0 and DRAW.random() < 0.5
        last = transition(6 + player, 0.0, "max_tokens" if cut else "completed")
        players.append(Trajectory([transition(4, 0.5, ""), last], tinker.ModelInput.from_ints([9])))
    return TrajectoryGroup(players, final_rewards_G=[1.0, 0.0], metrics_G=[{}, {}])


def datum(one: Transition) -> tinker.Datum:
    n = len(one.ac.tokens)
    columns = {
        "target_tokens": torch.tensor(one.ac.tokens),
        "logprobs": torch.tensor(one.ac.logprobs),
        "mask": torch.ones(n),
    }
    return tinker.Datum(
        model_input=tinker.ModelInput.from_ints([1] * n),
        loss_fn_inputs={k: tinker.TensorData.from_torch(v) for k, v in columns.items()},
    )


def main() -> None:
    folder = fresh("tinker")
    logger = JsonLogger(folder)
    for step in range(3):
        groups = [group() for _ in range(4)]
        tags = [["game"] for _ in groups]
        data = [datum(one) for g in groups for t in g.trajectories_G for one in t.transitions]
        trained = [torch.tensor(one.loss_fn_inputs["logprobs"].data) + 0.01 for one in data]
        metrics = {
            "progress/batch": step,
            **compute_trajectory_metrics(groups, tags),
            **compute_kl_sample_train(data, trained),
        }
        records = serialize_rollout_summaries(
            split="train", iteration=step, trajectory_groups_P=groups, taglist_P=tags
        )
        logger.store.write_rollouts(step, records)
        logger.log_metrics(metrics, step=step)
    how = "serialize_rollout_summaries, TrainingRunStore, JsonLogger; made-up trajectories"
    written("tinker", f"tinker-cookbook {version('tinker-cookbook')}", how)


if __name__ == "__main__":
    main()
