import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from roledrift_importers.episodes import Broadcast, spans_of, turns

from tests.ingest.logs import episode, job, trajectory, voting


def test_rewards_of_their_own_are_no_broadcast() -> None:
    body = episode(0, trajectory("a", "x", reward=1), trajectory("b", "y", reward=0))
    broadcast = Broadcast()
    rows = list(spans_of(body, 0, "f", job(Path()), broadcast))
    assert [row.reward for row in rows] == [1, 0]
    assert (broadcast.episodes, broadcast.equal) == (1, 0)
    assert "rewards" not in broadcast.notes()


def test_a_stored_outcome_that_disagrees_is_counted() -> None:
    broadcast = Broadcast()
    list(spans_of(voting(0, "444") | {"is_correct": True}, 0, "f", job(Path()), broadcast))
    assert broadcast.notes()["graded again"].startswith("1 episodes; 1 disagree")


def test_rollouts_of_one_problem_share_a_group() -> None:
    bodies = [voting(0) | {"id": name} for name in ("eval_0_run_0", "eval_0_run_1")]
    rows = [row for body in bodies for row in spans_of(body, 0, "f", job(Path()), Broadcast())]
    assert len({row.group for row in rows if row.role == "aggregator"}) == 1
    assert len({row.group for row in rows}) == 4
    assert len({row.episode for row in rows}) == 2


LEAF = st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=8)


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every container below ``node`` with each of its keys."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    inner = [node[key] for key in keys if isinstance(node[key], dict | list)]
    return [(node, key) for key in keys] + [one for below in inner for one in places(below)]


@st.composite
def damaged(draw: st.DrawFn) -> object:
    """An episode of which one part, anywhere, is replaced by something else."""
    body = json.loads(json.dumps(voting(0)))
    node, key = draw(st.sampled_from(places(body)))
    node[key] = draw(LEAF | st.lists(LEAF, max_size=2) | st.dictionaries(st.text(max_size=3), LEAF))
    return body


@settings(max_examples=150, deadline=None)
@given(damaged())
def test_damaged_episodes_never_raise(body: object) -> None:
    assert isinstance(body, dict)
    for row in spans_of(body, 0, "f", job(Path()), Broadcast()):
        assert row.text is None or isinstance(row.text, str)
        assert row.tokens is None or isinstance(row.tokens, int)


def test_slots_and_turns_from_the_order() -> None:
    assert turns(["g", "g", "g", "a"]) == [(0, 0), (1, 0), (2, 0), (0, 0)]
    assert turns(["g", "e", "g", "e"]) == [(0, 0), (0, 0), (0, 1), (0, 1)]
