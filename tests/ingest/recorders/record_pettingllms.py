"""PettingLLMs' environment logs, by its own logger.

PettingLLMs is not on the package index: `PYTHONPATH=<a checkout> python
tests/ingest/recorders/record_pettingllms.py`. The file of its logger is loaded alone (it needs
nothing but Python); the entries are what its execution engine hands over.
"""

import importlib.util
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from written import fresh, written


def main() -> None:
    found = next(
        file
        for place in sys.path
        if (file := Path(place) / "pettingllms" / "utils" / "logger_config.py").is_file()
    )
    spec = importlib.util.spec_from_file_location("logger_config", found)
    assert spec is not None
    assert spec.loader is not None
    theirs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(theirs)
    folder = fresh("pettingllms")
    for number, mode in enumerate(("train", "validate", "train")):
        if number:
            time.sleep(1.1)  # the folder of a phase is named after the second
        phase(theirs.MultiLoggerConfig(str(folder / "logs"), "exp"), mode)
    _rename(folder / "logs" / "exp")
    written(
        "pettingllms", "PettingLLMs a054fb1", "MultiLoggerConfig, with the entries of its engine"
    )


def phase(logger: Any, mode: str) -> None:
    """The entries that the execution engine makes, in its order."""
    for env, rollout in ((0, 0), (0, 1), (1, 2), (1, 3)):
        for turn in (1, 2):
            for name in ("coder", "tester"):
                if (env, turn, name) == (1, 2, "tester"):
                    failed = {"error": "no answer", "traceback": "..."}
                    what = "Failed to generate response: no answer"
                    logger.log_env_agent_info(mode, env, rollout, turn, name, what, failed)
                    continue
                logger.log_env_agent_info(
                    mode, env, rollout, turn, name, "Trajectory information updated",
                    {
                        "agent_prompt": {"text": f"write {{code}} {env}", "image": None},
                        "agent_response": f"[TURN:9] def f():\n    return {turn}",
                        "env_state": {"tests": "1/2"},
                    },
                )  # fmt: skip
        rewards = {"coder": float(rollout % 2), "tester": 0.5}
        for reason in ("success", "rollout_complete"):
            logger.log_rollout_summary(mode, env, rollout, rewards, reason, {"turn_idx": 1})
    if mode == "validate":
        for name in ("coder", "tester"):
            told = {"success_rate": 0.75}
            logger.log_rollout_summary(mode, -1, -1, {name: 0.75}, "validate_finished", told)
    logger.log_async_event(mode, -1, -1, "concurrent_batch_complete", "done")


def _rename(root: Path) -> None:
    """The time of recording out of the names: the phases at 10-00-00, 10-05-00 and 10-10-00."""
    moments = sorted(root.glob("*/*"))
    for number, moment in enumerate(moments):
        target = root / "11-20" / f"10-{5 * number:02}-00"
        target.parent.mkdir(exist_ok=True)
        if moment != target:
            shutil.move(moment, target)
    for left in root.iterdir():
        if not any(left.iterdir()):
            left.rmdir()


if __name__ == "__main__":
    main()
