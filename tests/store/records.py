"""Little runs for the tests of the store."""

from roledrift.judgement import Alert, Incident, alert_id
from roledrift.records import RunHeader, Sample, Stat, StepRecord
from roledrift.workflow import VOTING

HEADER = RunHeader(run="voting-7", workflow=VOTING, created="2025-01-01T00:00:00Z", seed=7)


def step(
    number: int, value: float = 1.0, name: str = "length", group: str = "aggregator"
) -> StepRecord:
    return StepRecord(step=number, time=f"t{number:04d}", groups={group: {name: Stat(4.0, value)}})


def alert(number: int, onset: int = 3, state: str = "open") -> Alert:
    return Alert(
        id=alert_id("length_inflation", "aggregator", onset),
        detector="length_inflation",
        finding="length_inflation",
        role="aggregator",
        policy="shared",
        level="INFO" if state == "closed" else "ERROR",
        state=state,  # type: ignore[arg-type]
        step=number,
        onset=onset,
        title=f"aggregator: answers x3.1 since step {onset}",
        text="Answers grew.",
        advice=("stop",),
    )


def incident(number: int, onset: int = 3, **other: object) -> Incident:
    known: dict[str, object] = {
        "state": "open",
        "severity": "failing",
        "role": "aggregator",
        "finding": "length_inflation",
        "sentence": f"The aggregator writes more since step {onset}.",
    }
    id_ = alert_id("length_inflation", "aggregator", onset)
    return Incident(id_, step=number, onset=onset, reported=onset, **known | other)  # type: ignore[arg-type]


def sample(number: int, text: str = "hello", role: str = "aggregator") -> Sample:
    return Sample(
        step=number, role=role, text=text, tokens=3, reward=0.5, flags=("canary", "longest")
    )
