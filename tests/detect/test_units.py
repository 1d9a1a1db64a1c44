"""Who is judged by what a log has only of all roles together."""

from roledrift.detect.units import known, mean_of, not_logged, reader, run_unit, too_short, units
from roledrift.records import Stat, StepRecord
from roledrift.workflow import SINGLE, VOTING


def test_of_several_roles_all_together_are_judged_too() -> None:
    assert units(VOTING) == ("generator", "aggregator", "*")
    assert units(SINGLE) == ("generator",)
    assert (run_unit(VOTING), run_unit(SINGLE)) == ("*", "generator")


def test_all_together_only_counts_where_no_role_has_it() -> None:
    every, own = {"entropy": Stat(1, 0.5), "length": Stat(1, 9)}, {"length": Stat(1, 8)}
    record = StepRecord(1, groups={"*": every, "generator": own})
    assert mean_of(record, "*", "entropy") == 0.5
    assert mean_of(record, "*", "length") is None
    assert mean_of(record, "generator", "length") == 8
    assert known(StepRecord(1, groups={"*": {"a": Stat(1, float("nan"))}}), "*", "a") is None
    assert reader("length") is reader("length")


def test_what_does_not_apply_is_not_counted_as_missing() -> None:
    assert not not_logged("d", SINGLE, "entropy").applies
    assert not too_short("d", VOTING, 60).applies
