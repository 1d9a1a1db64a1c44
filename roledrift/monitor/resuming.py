"""What a resumed run takes from its earlier segments before its first own step."""

from __future__ import annotations

from itertools import groupby

from roledrift.monitor.checkpoints import Checkpoints
from roledrift.monitor.components import MonitorComponents
from roledrift.monitor.textpairs import TextPairs
from roledrift.notices import Notices


def replay_records(
    parts: MonitorComponents, step: int, notices: Notices, checkpoints: Checkpoints
) -> int:
    """Let the judge see what earlier segments recorded before ``step``; how many records it was."""
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
    """Keep texts of earlier segments, to show them in alerts."""
    earlier = [sample for sample in parts.texts() if sample.step < step] if parts.texts else []
    for _, texts in groupby(earlier, key=lambda sample: sample.step):
        pairs.keep(texts)
