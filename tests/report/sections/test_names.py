from roledrift.detect import DETECTORS
from roledrift.report.sections.names import QUANTITIES, detector_name, finding_name


def test_every_detector_and_finding_has_plain_words() -> None:
    for name in DETECTORS:
        assert "_" not in detector_name(name)
        assert "_" not in finding_name(name)
    assert finding_name("something_new") == "something new"


def test_what_is_drawn_says_what_healthy_is_and_what_supplies_it() -> None:
    names = [quantity.name for quantity in QUANTITIES]
    assert len(set(names)) == len(names)
    for quantity in QUANTITIES:
        assert quantity.healthy
        assert quantity.supply
        assert quantity.title
