import pytest

from roledrift.errors import ConfigError
from roledrift.workflow import EVAL_OPT, ORCH_WORKERS, PRESETS, SINGLE, VOTING, Role, Workflow


def test_presets_name_the_papers_roles() -> None:
    assert VOTING.role_names == ("generator", "aggregator")
    assert VOTING.role("generator").slots == 3
    assert EVAL_OPT.role("evaluator").duty == "judge"
    assert ORCH_WORKERS.role_names == ("orchestrator", "worker", "synthesizer")
    assert set(PRESETS) == {"voting", "eval_opt", "orch_workers", "single"}


def test_routing_is_read_off_the_policies() -> None:
    assert VOTING.routing == "shared"
    assert VOTING.routed("isolated").routing == "isolated"
    assert VOTING.routed("isolated").policies == ("generator", "aggregator")
    mixed = ORCH_WORKERS.routed({"orchestrator": "head", "worker": "hand", "synthesizer": "head"})
    assert mixed.routing == "mixed"
    assert mixed.sharing("orchestrator") == ("synthesizer",)
    assert mixed.sharing("worker") == ()
    assert SINGLE.routing == "isolated"


def test_of_takes_what_users_have() -> None:
    assert Workflow.of("Eval-Opt") is EVAL_OPT
    assert Workflow.of(VOTING, routing="isolated").routing == "isolated"
    own = Workflow.of({"generator": 5, "aggregator": 1, "critic": 2})
    assert [role.slots for role in own.roles] == [5, 1, 2]
    assert own.role("aggregator").terse
    assert own.role("critic").duty == "solve"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Workflow.of("votting"), ["votting", "did you mean", "voting"]),
        (lambda: Workflow("w", (), ()), ["at least one role"]),
        (lambda: Workflow("w", (Role("a/b"),), ("p",)), ["'a/b'", "letters"]),
        (lambda: Workflow("w", (Role("a"), Role("a")), ("p", "p")), ["unique"]),
        (lambda: Workflow("w", (Role("a", slots=0),), ("p",)), ["slots=0"]),
        (lambda: Workflow("w", (Role("a", slots=1025),), ("p",)), ["at most 1024"]),
        (lambda: Workflow("w", tuple(Role(f"a{n}") for n in range(257)), ()), ["257 roles"]),
        (lambda: Workflow("w", (Role("a"),), ()), ["1 roles but 0 policies"]),
        (lambda: VOTING.index("agregator"), ["agregator", "did you mean", "aggregator"]),
        (lambda: VOTING.routed("isolate"), ["isolate", "'isolated'"]),
        (lambda: VOTING.routed({"generator": "g"}), ["aggregator", "every role"]),
        (lambda: VOTING.routed({"generator": "g", "aggregatr": "a"}), ["aggregatr"]),
        (lambda: Workflow.of(VOTING, routing="mixed"), ["map"]),
    ],
)
def test_mistakes_are_named(make, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    for word in words:
        assert word.lower() in str(caught.value).lower()


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        Workflow("w", (Role("1"), Role("1", slots=0)), ("p",))
    for part in ("start with a letter", "slots=0", "unique", "2 roles but 1 policies"):
        assert part in str(caught.value)
