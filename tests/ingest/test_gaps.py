from roledrift.detect import DETECTORS
from roledrift.ingest import FORMATS, gaps


def test_what_is_missing_is_named_with_its_verdicts_and_its_switch() -> None:
    lacking = gaps.missing({"length", "text", "reward", "val_accuracy", "rollout.k3"})
    assert [one.name for one in lacking] == [gaps.ENTROPY]
    assert gaps.notes(lacking, {gaps.ENTROPY: "entropy=true"}) == {
        "not in it": "entropy, of single roles; so no verdict of entropy_collapse, echo_trap",
        "next time": "entropy: entropy=true",
    }
    assert gaps.notes([], {}) == {}


def test_one_switch_for_several_things_is_said_once() -> None:
    lacking = gaps.missing({"text", "reward", "val_accuracy", "entropy"})
    said = gaps.notes(lacking, dict.fromkeys((gaps.LENGTHS, gaps.LOGPROBS), "x=1"))["next time"]
    assert said == "lengths, log-probabilities: x=1"
    assert gaps.notes(lacking, {})["next time"].endswith(gaps.LIVE)


def test_the_names_are_those_of_detectors_and_quantities() -> None:
    findings = {"signal_loss"}  # of the detector "hygiene"
    for one in gaps.QUANTITIES:
        assert set(one.verdicts) <= {*DETECTORS, *findings}
    names = {one.name for one in gaps.QUANTITIES}
    for form in FORMATS.values():
        assert set(form.supplies) <= names
