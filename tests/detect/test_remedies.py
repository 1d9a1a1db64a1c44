"""Settings that the advice names exist in the trainers it names them for."""

import re
import tomllib
from dataclasses import fields, replace

import pytest
from trl import GRPOConfig

from reference_trainer.config import Config as TrainerConfig
from reference_trainer.config import from_mapping
from roledrift.detect import remedies
from roledrift.detect.catalogue import shipped
from roledrift.detect.remedies import Remedy, family, go_back, worded
from roledrift.records import Checkpoint

ALL = [one for one in vars(remedies).values() if isinstance(one, Remedy)]
ROLE = "generator"


def lines(host: str) -> list[str]:
    return [one.settings[host].format(role=ROLE) for one in ALL if host in one.settings]


def test_trl_has_the_settings() -> None:
    known = {one.name for one in fields(GRPOConfig)}
    assert {line.split("=")[0] for line in lines("trl")} <= known


def test_the_reference_trainer_reads_the_lines() -> None:
    told_lines = lines("reference_trainer")
    assert len(told_lines) >= 8
    for line in told_lines:
        body = tomllib.loads(line.replace("<tokens>", "28"))
        if "interventions" in body and "lr_factors" in body["interventions"]:
            body["routing"] = "isolated"
        config = from_mapping(body)
        assert config != TrainerConfig() or line.startswith(("routing", "train.", "rollout."))


def test_a_host_without_a_setting_gets_the_general_words_only() -> None:
    assert worded(remedies.OWN_POLICY, role=ROLE, host="trl") == (
        "give the generator a policy of its own (an adapter per role)"
    )
    assert worded("look at {role}", role=ROLE, host="verl") == "look at the generator"
    assert (
        worded(remedies.KL_ANCHOR, role=ROLE) == "anchor the generator to its start with a KL term"
    )


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("trl.GRPOTrainer", "trl"),
        ("trl", "trl"),
        ("verl", "verl"),
        ("rllm.TinkerBackend", "rllm"),
        ("reference_trainer", "reference_trainer"),
        ("paper code (rllm fork), evaluation dump", "paper"),
        ("prime-rl", ""),
        ("", ""),
    ],
)
def test_hosts_are_known_by_their_first_word(host: str, name: str) -> None:
    assert family(host) == name


def test_going_back_names_the_checkpoint_in_the_hosts_words() -> None:
    kept = Checkpoint(15, "out/checkpoint-15")
    assert go_back(19, None) == "stop, or roll back to a checkpoint from before step 19"
    start = "stop, or roll back to the checkpoint of step 15, the last from before step 19: "
    assert go_back(19, kept) == start + "out/checkpoint-15"
    assert go_back(19, kept, "trl") == (
        start + "trainer.train(resume_from_checkpoint='out/checkpoint-15')"
    )
    odd = replace(kept, path="s3://b/{x}/c")
    assert "s3://b/{x}/c" in go_back(19, odd, "verl")


def test_every_line_of_every_finding_can_be_told() -> None:
    for host in ("", "trl", "verl", "rllm", "reference_trainer", "paper", "drmas"):
        for finding in (one for card in shipped() for one in card.findings):
            for one in finding.advice:
                line = worded(one, role=ROLE, host=host)
                assert not re.search(r"\{role\}|\{\{|\}\}", line)


def test_what_is_said_of_all_roles_names_no_role() -> None:
    assert worded(remedies.KL_ANCHOR, role="*", host="reference_trainer") == (
        "anchor every role to its start with a KL term"
    )
