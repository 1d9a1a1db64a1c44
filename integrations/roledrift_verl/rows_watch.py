"""A run that is fed the rows of every step: what the watches of verl and of rLLM share."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roledrift.capture.tokens import TokenCapture
from roledrift.config import from_mapping
from roledrift.errors import ConfigError
from roledrift.ingest.roles import RoleMap
from roledrift.measure.sampling import TextSampler
from roledrift.monitor.monitor import Monitor
from roledrift.monitor.open_monitor import open_monitor
from roledrift.notify.metric_logger import StatisticsLog
from roledrift.store.reader import is_run, open_run
from roledrift.workflow import Workflow
from roledrift_verl.batch import Rows, Sampling, role_batch, samples, speakers
from roledrift_verl.settings import Settings

Speakers = list[tuple[str, int | None]]
"""Role and slot per row."""


class RowsWatch:
    """One training whose rows are measured once per step.

    Args:
        settings: What to watch.
        out: Run directory; a run that is there is continued if ``step`` is above 0.
        step: Steps that were done before.
        how: How the responses were sampled.
        tokenizer: Decodes them; None keeps no texts.
        host: Name of the trainer.
        notes: For the header of the run.
        unnamed: Why the first rows may name no role of the workflow, and what to do.

    Raises:
        ConfigError: If the settings are wrong.
        StoreError: If the run directory cannot be written, or holds a run that this training does
            not continue.
    """

    def __init__(
        self,
        settings: Settings,
        out: str | Path,
        *,
        step: int,
        how: Sampling,
        tokenizer: Any,
        host: str,
        notes: Mapping[str, str],
        unnamed: str,
    ) -> None:
        self.how = how
        self._names = RoleMap(settings.roles)
        self._tokenizer = tokenizer
        self._unnamed = unnamed
        routing = settings.routing or None
        if routing not in (None, "shared", "isolated"):
            raise ConfigError(f"roledrift.routing is {routing!r}: say 'shared' or 'isolated'")
        workflow = Workflow.of(settings.workflow, routing=routing)  # type: ignore[arg-type]
        for rule in self._names.rules:
            workflow.index(rule.role)
        resume = step > 0 and is_run(out)  # its checkpoint may be from before it was watched
        earlier = open_run(out).samples() if resume else ()
        canaries = [sample.prompt for sample in earlier if "canary" in sample.flags]
        self.statistics = StatisticsLog(workflow.role_names)
        self.monitor: Monitor = open_monitor(
            workflow,
            out,
            config=settings.config or None,
            resume=resume,
            sinks=(self.statistics,),
            host=host,
            notes=notes,
        )
        self._config = from_mapping(self.monitor.header.config)
        self._sampler = TextSampler(self._config.sampling, canaries)
        self._capture = TokenCapture(workflow)
        self.monitor.attach(self._capture)

    def finish(self) -> None:
        """Close the run and say what it is."""
        self.monitor.close()

    def _measure(self, rows: Rows, step: int) -> None:
        workflow = self.monitor.workflow
        who = self._speakers(rows)
        if self._unnamed and not any(role in workflow.role_names for role, _ in who):
            got = sorted({role for role, _ in who})[:5]
            say(
                f"roledrift: no row names one of {list(workflow.role_names)} (got {got}): "
                f"{self._unnamed}"
            )
            self._unnamed = ""
        texts = None
        if self._config.tier != "economy" and self._tokenizer is not None:
            texts = [self._decode(ids) for ids in rows.responses]
            self.monitor.add_samples(
                samples(
                    workflow,
                    rows,
                    who,
                    how=self.how,
                    step=step,
                    sampler=self._sampler,
                    decode=self._decode,
                )
            )
        made = role_batch(workflow, rows, who, how=self.how, texts=texts)
        self._capture.add(made)
        if made.reward_B is not None and len(made.reward_B):
            self.monitor.add_totals({"reward": float(made.reward_B.double().mean())})

    def _speakers(self, rows: Rows) -> Speakers:
        return speakers(rows, self._names, self._decode)

    def _decode(self, ids: list[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=True))


def say(line: str) -> None:
    """One line where verl's own messages are: its root logger shows warnings only."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
