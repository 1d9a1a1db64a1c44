from roledrift.detect.catalogue import shipped
from roledrift.report.sections.names import plain_words, statistic_name


def test_statistics_have_words_and_unknown_ones_stay() -> None:
    assert statistic_name("update.k3") == "movement per update (k3)"
    assert statistic_name("val_accuracy") == "validation accuracy"
    assert statistic_name("my.own") == "my.own"


def test_what_a_detector_said_reads_without_names_in_the_records() -> None:
    said = plain_words("Val_accuracy 0.4 -> 0.2; bare_stamp gone, my.bare_stamp not")
    assert said == "Validation accuracy 0.4 → 0.2; bare stamps gone, my.bare_stamp not"


def test_what_detectors_read_has_a_title() -> None:
    raw = {
        name
        for card in shipped()
        for name in card.reads
        if statistic_name(name) == name.replace("_", " ") and not name.isalpha()
    }
    assert raw == set()
