"""What a resumed run takes over from its earlier segments."""

from __future__ import annotations

from itertools import groupby

from roledrift.monitor.checkpoints import Checkpoints
from roledrift.monitor.components import MonitorComponents
from roledrift.monitor.textpairs import TextPairs
from roledrift.notices import Notices


def replay_records(
    parts: MonitorComponents, step: int, notices: Notices, checkpoints: Checkpoints
) -> int:
    """Show the judge the records of earlier segments up to ``step``, and return their number."""
    if parts.history is None or parts.judge is None:
        return 0
    judged = 0
    for record in parts.history():
        if record.step < step:
            alerts = parts.judge.update(record)
            notices.update(parts.judge.changed, alerts)
            checkpoints.recall(record.checkpoints)
            judged += 1
    return judged


def replay_texts(parts: MonitorComponents, step: int, pairs: TextPairs) -> None:
    """Keep texts of earlier segments, so that alerts can show them."""
    earlier = [sample for sample in parts.texts() if sample.step < step] if parts.texts else []
    for _, texts in groupby(earlier, key=lambda sample: sample.step):
        pairs.keep(texts)
