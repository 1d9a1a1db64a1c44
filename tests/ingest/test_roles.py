import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.errors import ConfigError, StoreError
from roledrift.ingest.roles import MAX_ROLES, RoleMap, safe_role, workflow_of
from roledrift.workflow import Workflow


def test_trailing_digits_are_the_slot() -> None:
    resolve = RoleMap().resolve
    assert resolve("generator2") == ("generator", 2)
    assert resolve("worker") == ("worker", None)
    assert resolve("voterA") == ("voterA", None)
    assert resolve("Agent 1") == ("Agent", 1)
    assert resolve("7") == ("r7", None)
    assert resolve("solver_v2024") == ("solver_v2024", None)


def test_rules_by_name_and_by_prompt() -> None:
    resolve = RoleMap(r"0=generator:0, 1=generator:1 , ~Solution \d{1,2}=aggregator").resolve
    assert resolve("1") == ("generator", 1)
    assert resolve("9", "see Solution 2") == ("aggregator", None)
    assert resolve("9", "no") == ("r9", None)


def test_the_first_rule_that_fits_counts() -> None:
    """By order alone: a rule about the name stood above every rule about the prompt before."""
    prompt = "Solution 1: ..."
    by_prompt = RoleMap("~Solution=aggregator,output=generator")
    assert by_prompt.resolve("output", prompt) == ("aggregator", None)
    assert by_prompt.resolve("output", "solve") == ("generator", None)
    by_name = RoleMap("output=generator,~Solution=aggregator")
    assert by_name.resolve("output", prompt) == ("generator", None)


def test_it_says_how_many_spans_each_rule_took() -> None:
    rules = RoleMap("~Solution=aggregator,output=generator,x=y")
    for prompt in ("Solution", "solve", "solve"):
        rules.resolve("output", prompt)
    rules.resolve("z")
    assert rules.notes() == {
        "rules": "~Solution=aggregator: 1 span; output=generator: 2 spans; x=y: none; "
        "no rule: 1 span"
    }
    assert RoleMap().notes() == {}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("generator", "no name=role"),
        ("a=b:x", "slot must be a number"),
        ("a=1b!", "starts with a letter"),
        ("~(=b", "no regular expression"),
    ],
)
def test_what_cannot_be_read_is_named(written: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        RoleMap(written)


def test_the_workflow_is_the_preset_with_these_roles() -> None:
    built = workflow_of({"aggregator": 1, "generator": 5}, "isolated")
    assert (built.name, built.role_names, built.routing) == (
        "voting",
        ("generator", "aggregator"),
        "isolated",
    )
    assert (built.role("generator").slots, built.role("aggregator").terse) == (5, True)
    other = workflow_of({"solver": 1, "judge": 1}, None)
    assert (other.name, other.routing) == ("imported", "shared")


def test_what_cannot_be_roles() -> None:
    with pytest.raises(StoreError, match="no role"):
        workflow_of({}, None)
    with pytest.raises(StoreError, match="at most"):
        workflow_of({f"r{n}": 1 for n in range(MAX_ROLES + 1)}, None)
    resolve = RoleMap().resolve
    with pytest.raises(StoreError, match="different names"):
        list(map(resolve, (f"x{n}y" for n in range(10_000))))


@given(st.text(max_size=80))
def test_any_name_is_a_legal_role(name: str) -> None:
    role, slot = RoleMap().resolve(name)
    Workflow.of({role: (slot or 0) + 1})
    assert safe_role(role) == role
