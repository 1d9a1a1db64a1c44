"""Watch a program that trains on verl's ``DataProto`` without verl's trainer: one call per step.

For descendants of verl with a loop of their own, such as Dr. MAS and PettingLLMs; where to call it
there: docs/integrations/multi_agent.md. Rows say their role in the columns of these programs, in a
column ``role``, or by their prompt (``roles="~You check=evaluator"``).
"""

from __future__ import annotations

from typing import Any

from roledrift_verl.batch import Sampling, from_data_proto, role_batch, speakers

from roledrift import TokenCapture, open_monitor
from roledrift.ingest.roles import RoleMap
from roledrift.notify.metric_logger import StatisticsLog
from roledrift.workflow import Workflow


class WatchedRows:
    """One training; ``stop`` says after each step whether it should end."""

    def __init__(
        self, workflow: str | dict[str, int], out: str, tokenizer: Any, *, roles: str = ""
    ) -> None:
        self.tokenizer, self.names, self.stop = tokenizer, RoleMap(roles), False
        self.how = Sampling(temperature=1.0, longest=4096, ends=frozenset({tokenizer.eos_token_id}))
        known = Workflow.of(workflow)
        self.statistics = StatisticsLog(known.role_names)
        self.monitor = open_monitor(known, out, host="verl", sinks=(self.statistics,))
        self.capture = TokenCapture(known)
        self.monitor.attach(self.capture)

    def record(self, *batches: Any, step: int) -> dict[str, float]:
        """Measure the step's batches (one per policy); returns what to add to the program's log."""
        with self.monitor.fenced("batch", cost="capture"):
            for data in batches:
                rows = from_data_proto(data)
                who = speakers(rows, self.names, self.tokenizer.decode)
                self.capture.add(role_batch(self.monitor.workflow, rows, who, how=self.how))
        self.stop = self.monitor.end_step(step).stop
        return self.statistics.take()
