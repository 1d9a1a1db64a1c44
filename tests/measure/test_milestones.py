from roledrift.measure.milestones import milestones


def test_checkpoints_are_early_best_and_last() -> None:
    assert milestones([0, 10, 20, 30, 40], {0: 0.1, 20: 0.9, 40: 0.2}) == (10, 20, 40)
    assert milestones([0, 10, 20], {}) == (0, 10, 20)
    assert milestones([7], {0: 1.0}) == (7,)
    assert milestones([], {0: 1.0}) == ()
