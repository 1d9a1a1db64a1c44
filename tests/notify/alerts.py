"""One alert, its incident and the notice about both, with everything that they can carry."""

from roledrift.judgement import Alert, Consequence, Incident, TextPair
from roledrift.notices import Notice
from roledrift.records import Checkpoint, RunHeader
from roledrift.workflow import VOTING

HEADER = RunHeader("voting <7B>", VOTING, host="trl.GRPOTrainer")
ALERT = Alert(
    id="a3f2c1d0",
    detector="length_inflation",
    finding="length_inflation",
    role="aggregator",
    policy="shared",
    level="ERROR",
    state="open",
    step=23,
    onset=19,
    title="The aggregator has written 3.1 times as much since step 19",
    text="Responses are 3.1 times as long as at the start\x1b[31m.",
    statistic="length",
    value=15.6,
    threshold=7.5,
    baseline=5.0,
    advice=("stop, or roll back", "cap the answers of aggregator: max_completion_length=<tokens>"),
    stops=True,
    evidence=12.34,
    chance="against 8 needed",
    pairs=(TextPair(2, 23, "\\boxed{2}", "Well, @everyone <!channel> \\boxed{2}", "p1"),),
    checkpoint=Checkpoint(15, "out/checkpoint-15"),
)
INCIDENT = Incident(
    id="a3f2c1d0",
    step=23,
    state="open",
    severity="failing",
    role="aggregator",
    finding="length_inflation",
    onset=19,
    reported=23,
    sentence="The aggregator has written 3.1 times as much since step 19. Accuracy has fallen from "
    "0.80 to 0.40.",
    consequences=(
        Consequence(
            *(
                "b",
                "*",
                "accuracy_cliff",
                "failing",
                21,
                23,
                "Accuracy has fallen from 0.80 to 0.40",
            )
        ),
    ),
    damage="accuracy has fallen from 0.80 to 0.40",
    evidence=ALERT.text,
    advice=ALERT.advice,
    checkpoint=ALERT.checkpoint,
    alerts=("a3f2c1d0", "b"),
)
NOTICE = Notice("opened", 23, INCIDENT.sentence, INCIDENT, ALERT, stops=True)
