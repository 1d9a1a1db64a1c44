"""What is missing in a source, and the detectors that cannot judge without it."""

from roledrift.detect.catalogue import shipped
from roledrift.ingest import formats, gaps


def test_what_is_missing_is_named_with_the_detectors_it_silences_and_its_switch() -> None:
    held = {"length", "text", "reward", "val_accuracy", "rollout.k3"}
    lacking = gaps.missing(held)
    assert [one.name for one in lacking] == [gaps.ENTROPY]
    assert gaps.notes(lacking, {gaps.ENTROPY: "entropy=true"}, held) == {
        "not in it": "entropy, of single roles; so no verdict of entropy_collapse, entropy_floor",
        "next time": "entropy: entropy=true",
    }
    assert gaps.notes([], {}, held) == {}


def test_one_switch_for_several_things_is_named_once() -> None:
    held = {"text", "reward", "val_accuracy", "entropy"}
    lacking = gaps.missing(held)
    switches = dict.fromkeys((gaps.LENGTHS, gaps.LOGPROBS), "x=1")
    assert gaps.notes(lacking, switches, held)["next time"] == "lengths, log-probabilities: x=1"
    assert gaps.notes(lacking, {}, held)["next time"].endswith(gaps.LIVE)


def test_what_is_known_of_all_roles_together_is_absent_and_judged_all_the_same() -> None:
    held = {"text", "reward", "val_accuracy", "rollout.k3"}
    said = gaps.notes(gaps.missing(held), {}, held, {"length", "entropy"})["not in it"]
    assert said == "lengths, entropy, of single roles"
    said = gaps.notes(gaps.missing(held), {}, held, {"length"})["not in it"]
    assert said.endswith("so no verdict of entropy_collapse, entropy_floor")


def test_accuracy_is_judged_without_validations_where_there_are_rewards() -> None:
    (validation,) = [one for one in gaps.QUANTITIES if one.name == gaps.VALIDATION]
    assert validation.silences({"length"}) == ("held_out", "accuracy_cliff")
    assert validation.silences({"reward"}) == ()
    said = gaps.notes([validation], {}, {"reward"})["not in it"]
    assert said == "validation, of single roles"


def test_every_detector_that_needs_a_quantity_is_silenced_by_one() -> None:
    """Those that are not always find something, or are about what only some trainers log."""
    silenced = {name for one in gaps.QUANTITIES for name in one.silences(())}
    always = {"settings_changed", "training_data", "plateau"}
    some = {"clipping", "gradients", "learning_signal", "reference_kl", "repetition"}
    assert {card.name for card in shipped()} - silenced == (
        always | some | {"throughput", "value_head"}
    )


def test_formats_name_quantities_that_exist() -> None:
    names = {one.name for one in gaps.QUANTITIES}
    for form in formats().values():
        assert set(form.supplies) <= names
