import pytest

from benchmarks.detection.captures import capture_of, onset_of

HIGH, LOW = 0.9, 0.1


def test_a_role_that_keeps_its_form() -> None:
    assert capture_of([HIGH] * 40) == "none"
    assert onset_of([HIGH] * 40) is None


def test_a_lasting_capture_and_its_onset() -> None:
    shares = [HIGH] * 14 + [LOW] * 26
    assert capture_of(shares) == "lasting"
    assert onset_of(shares) == 15


def test_a_passing_capture() -> None:
    shares = [HIGH] * 10 + [LOW] * 8 + [HIGH] * 22
    assert capture_of(shares) == "passing"
    assert onset_of(shares) == 11


def test_single_iterations_are_noise() -> None:
    shares = [HIGH] * 40
    shares[12] = shares[20] = 0.0
    assert capture_of(shares) == "none"


@pytest.mark.parametrize("end", [0.46, 0.6])
def test_the_threshold_is_half_of_the_start(end: float) -> None:
    assert capture_of([HIGH] * 20 + [end] * 20) == "none"
    assert capture_of([HIGH] * 20 + [0.45] * 20) == "lasting"


def test_a_role_without_a_terse_form_cannot_lose_it() -> None:
    assert capture_of([0.2] * 10 + [0.0] * 30) == "none"
    assert capture_of([]) == "none"
