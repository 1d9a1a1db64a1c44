"""rLLM's episode log, by its own logger.

rLLM is not on the package index: `PYTHONPATH=<a checkout> python
tests/ingest/recorders/record_rllm.py` with what rllm.utils.episode_logger imports (pydantic). The
episodes are made up here, the files are written by rLLM.
"""

import random
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import rllm.utils.episode_logger as theirs
from rllm.types import Episode, Step, Trajectory
from written import fresh, written

DRAW = random.Random(0)


def trajectory(name: str, text: str, reward: float) -> Trajectory:
    chat = [{"role": "user", "content": f"as the {name}: 2+3?"}]
    chat.append({"role": "assistant", "content": text})
    step = Step(chat_completions=chat, model_response=text, action=text, reward=reward, done=True)
    return Trajectory(name=name, steps=[step], reward=reward)


def episode(task: str, rollout: int) -> Episode:
    answers = [DRAW.choice("556") for _ in range(2)]
    pick = DRAW.randrange(2)
    won = float(answers[pick] == "5")
    parts = [trajectory("solver", f"so \\boxed{{{one}}}", won) for one in answers]
    parts.append(trajectory("aggregator", f"\\boxed{{{pick + 1}}}", won))
    return Episode(
        id=f"{task}:{rollout}",
        task={"question": f"2+3? ({task})", "ground_truth": "5"},
        is_correct=bool(won),
        trajectories=parts,
        metrics={"solver_acc": answers.count("5") / 2},
    )


def main() -> None:
    folder = fresh("rllm")
    logger = theirs.EpisodeLogger(str(folder))
    for step in (1, 2):
        episodes = [episode(f"t{n}", rollout) for n in range(2) for rollout in range(2)]
        logger.log_episodes_batch(episodes, step=step, mode="train", epoch=0)
    logger.log_episodes_batch([episode("v0", 0)], step=2, mode="val", epoch=0)
    written("rllm", f"rLLM {_version()}", "EpisodeLogger.log_episodes_batch; made-up episodes")


def _version() -> str:
    root = Path(str(theirs.__file__)).parents[2]
    try:
        return version("rllm")
    except PackageNotFoundError:
        named = [
            line.split('"')[1]
            for line in (root / "pyproject.toml").read_text().splitlines()
            if line.startswith("version")
        ]
        return named[0]


if __name__ == "__main__":
    main()
