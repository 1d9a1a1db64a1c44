"""Steps that take ever longer."""

from __future__ import annotations

import numpy as np

from tests.detect.logged import healthy, verdict

SLOWER = 1 + np.clip((np.arange(240) - 100) / 100, 0, 1)


def test_slower_steps_are_found_unless_longer_responses_explain_them() -> None:
    run = healthy()
    slow = run | {"step_time": run["step_time"] * SLOWER}
    assert verdict(slow, "throughput").finding == "slowdown"
    longer = slow | {"length": run["length"] * SLOWER}
    found = verdict(longer, "throughput")
    assert (found.state, "explain" in found.reason) == ("watch", True)


def test_shorter_responses_are_not_slower_steps() -> None:
    run = healthy()
    run["length"] = run["length"] / SLOWER
    assert verdict(run, "throughput").finding == ""
