"""One run in memory, which is read on as it grows: its curves, incidents and texts."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from roledrift.analysis.frames import GRADIENT_NORM, gradient_norms, place
from roledrift.errors import StoreError
from roledrift.judgement import Incident
from roledrift.monitor.textpairs import PAIRS, TextPairs
from roledrift.records import StepRecord
from roledrift.report.sanitise import clean
from roledrift.store.glance import Stamp, stamp
from roledrift.store.reader import StoredRun, open_run
from roledrift.sums import EVERYONE
from roledrift.view import documents
from roledrift.view.judging import Judgement
from roledrift.workflow import Workflow

TOTALS = ""
"""Group of the numbers that a trainer logs for a whole step."""

_AROUND = 3
_TEXTS = 24
_PROBLEMS = 3

Address = tuple[str, str]
"""Group and statistic."""


class FollowedRun:
    """A run whose steps stay in memory, so that nothing is read twice.

    Raises:
        StoreError: From every method, if the run cannot be read or is gone.
        SchemaError: Likewise, if it was written by a newer version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._stored: StoredRun | None = None
        self._forget()

    def _forget(self) -> None:
        self._stamp: Stamp = ()
        self._records: list[StepRecord] = []
        self._columns: dict[Address, list[float | None]] = {}
        self._addresses: dict[Address, None] = {}
        self._generation = secrets.token_hex(4)

    def refresh(self) -> StoredRun:
        """Read what was appended since the last call."""
        with self._lock:
            now = stamp(self.path)
            if not now:
                self._stored = None
                raise StoreError(f"{self.path}: this run is no longer there")
            if self._stored is not None and now == self._stamp:
                return self._stored
            begun_anew = _header(now) != _header(self._stamp)
            if self._stored is None or begun_anew:
                self._stored = open_run(self.path)
                self._forget()
            else:
                self._stored = self._stored.reread()
            self._take(self._stored.steps())
            self._stamp = now
            return self._stored

    def _take(self, records: list[StepRecord]) -> None:
        same = 0
        for known, now in zip(self._records, records, strict=False):
            if known is not now:
                break
            same += 1
        if same < len(self._records):  # it went back, or a validation joined a record
            self._generation = secrets.token_hex(4)
            self._columns = {}
        for record in records[same:]:
            self._addresses |= dict.fromkeys((TOTALS, name) for name in record.totals)
            for group, stats in record.groups.items():
                self._addresses |= dict.fromkeys((group, name) for name in stats)
            for gram in record.gradients:
                norms = gradient_norms(gram)
                self._addresses |= dict.fromkeys((group, GRADIENT_NORM) for group in norms)
        self._records = records

    @property
    def _workflow(self) -> Workflow:
        assert self._stored is not None
        return self._stored.header.workflow

    def document(
        self,
        judged: Judgement,
        wanted: Collection[str] | None = None,
        known: str = "",
        *,
        slots: bool = True,
    ) -> dict[str, Any]:
        """Curves of a run and what was found in it.

        Args:
            judged: What was found in it.
            wanted: Statistics besides those that the incidents are about; None for all.
            known: ``known`` of the document that the page has: only steps after it are sent.
            slots: Whether the curves of slots are wanted.
        """
        with self._lock:
            stored = self.refresh()
            first = self._known(known)
            names = {clean(name) for _, name in self._addresses}
            incidents = [documents.incident(incident, judged.alerts or stored.alerts())
                     for incident in judged.incidents]  # fmt: skip
            causes = {str(name) for incident in incidents for name in incident["statistics"]}
            chosen = names if wanted is None else names & {*wanted, *causes}
            series = [
                body | {"values": self._column(address)[first:]}
                for address in self._addresses
                if clean(address[1]) in chosen
                and ((body := self._place(address))["scope"] != "slot" or slots)
            ]
            listed = {clean(name): name for _, name in self._addresses}
            return {
                "schema": documents.SCHEMA,
                "name": clean(stored.header.run or self.path.name),
                "roles": documents.harmless(self._workflow.role_names),
                "state": stored.state,
                "known": f"{self._generation}:{len(self._records)}",
                "from": first,
                "steps": [record.step for record in self._records[first:]],
                "series": series,
                "statistics": [documents.statistic(name) for name in sorted(listed.values())],
                "incidents": incidents,
                "text_steps": list(stored.sample_steps),
                "problems": documents.problems(stored.problems[:_PROBLEMS]),
            }

    def _known(self, known: str) -> int:
        generation, _, count = known.partition(":")
        if generation != self._generation or not count.isdecimal():
            return 0
        return min(int(count), len(self._records))

    def _place(self, address: Address) -> dict[str, Any]:
        group, name = address
        if group == TOTALS:
            scope, role, slot = "step", EVERYONE, None
        else:
            scope, role, slot = place(group, self._workflow.role_names)
        return {"scope": scope, "role": clean(role), "slot": slot, "statistic": clean(name)}

    def _column(self, address: Address) -> list[float | None]:
        group, name = address
        column = self._columns.setdefault(address, [])
        for record in self._records[len(column) :]:
            if group == TOTALS:
                column.append(record.totals.get(name))
            elif name == GRADIENT_NORM:
                norms: dict[str, float] = {}
                for gram in record.gradients:
                    norms |= gradient_norms(gram)
                column.append(norms.get(group))
            else:
                column.append(record.mean(group, name))
        return column

    def pairs(self, cause: Incident) -> dict[str, Any]:
        """Return texts from before and after the onset of an incident, side by side."""
        with self._lock:
            stored = self.refresh()
            live = [pair for alert in stored.alerts() if alert.id in cause.alerts[:1]
                    for pair in alert.pairs]  # fmt: skip
            pairs = live[:PAIRS] or self._paired(stored, cause)
        role = cause.role if cause.role != EVERYONE else "any role"
        none = f"No texts of {role} were kept before and after step {cause.onset}."
        return {
            "role": clean(cause.role),
            "pairs": [documents.pair(pair) for pair in pairs],
            "note": "" if pairs else none,
        }

    def _paired(self, stored: StoredRun, cause: Incident) -> Sequence[Any]:
        before = [step for step in stored.sample_steps if step < cause.onset][:_AROUND]
        after = [step for step in stored.sample_steps if step >= cause.onset][-_AROUND:]
        kept = TextPairs()
        for step in (*before, *after):
            kept.keep(stored.samples(_TEXTS * 4, steps=(step,)))
        roles = (cause.role,) if cause.role != EVERYONE else self._workflow.role_names
        return next(filter(None, (kept.around(role, cause.onset) for role in roles)), ())

    def texts(self, role: str, step: int) -> dict[str, Any]:
        """Return the texts of a role at the step nearest to ``step`` that has texts.

        Args:
            role: As the page knows it, without control characters.
            step: Any step.
        """
        with self._lock:
            stored = self.refresh()
            near = sorted(stored.sample_steps, key=lambda kept_step: abs(kept_step - step))
            for at in near[:_AROUND]:
                texts = [
                    sample for sample in stored.samples(None, steps=(at,))
                    if role in (EVERYONE, clean(sample.role))
                ]  # fmt: skip
                if texts:
                    shown = [documents.text(sample) for sample in texts[:_TEXTS]]
                    return {"role": role, "step": at, "texts": shown, "note": ""}
        kept = "This run keeps no texts." if not near else f"No text of {role} is kept near there."
        return {"role": role, "step": step, "texts": [], "note": kept}


def _header(now: Stamp) -> tuple[object, ...]:
    return tuple(file for file in now if file[0] == "run.json")
