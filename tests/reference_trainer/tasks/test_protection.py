import pytest

from reference_trainer.tasks.protection import FLOORS, Protection, shortfall

BARE = Protection("rlimits", own_user=False, seccomp=False, landlock=False)
CONFINED = Protection("rlimits", own_user=False, seccomp=True, landlock=True)
SPACES = Protection("namespaces", own_user=True, seccomp=True, landlock=False)


@pytest.mark.parametrize(
    ("protection", "strength", "label"),
    [
        (BARE, "rlimits", "rlimits (bare)"),
        (CONFINED, "confined", "rlimits (seccomp, Landlock)"),
        (SPACES, "namespaces", "namespaces (own user, seccomp)"),
        (Protection("rlimits", True, True, False), "rlimits", "rlimits (own user, seccomp)"),
        (Protection("namespaces", False, False, False), "namespaces", "namespaces (bare)"),
    ],
)
def test_strength_and_label(protection: Protection, strength: str, label: str) -> None:
    assert (protection.strength, protection.label) == (strength, label)
    for floor in FLOORS:
        met = FLOORS.index(protection.strength) <= FLOORS.index(floor)
        assert (shortfall(protection, floor) == "") is met


def test_a_shortfall_says_what_programs_could_do_and_what_helps() -> None:
    said = shortfall(BARE, "confined")
    for part in ("network", "private files", "user namespaces", "sandbox.floor = 'rlimits'"):
        assert part in said
    assert "write outside" in shortfall(Protection("rlimits", True, True, False), "confined")
