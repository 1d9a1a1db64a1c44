"""Records in a row."""

from roledrift.detect.evidence.streak import Streak


def test_a_streak_has_a_length_and_a_first_step_until_it_breaks() -> None:
    streak = Streak()
    seen = []
    for step, holds in ((3, True), (5, True), (6, False), (8, True)):
        n = streak.observe(step, holds)
        assert n == streak.n
        seen.append((n, streak.onset))
    assert seen == [(1, 3), (2, 3), (0, None), (1, 8)]
