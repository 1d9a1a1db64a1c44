from hypothesis import given
from hypothesis import strategies as st

from roledrift.monitor.textpairs import CLIP, PAIRS, TextPairs, clipped
from roledrift.records import Sample


def canary(step: int, prompt: str, text: str, slot: int = 0) -> Sample:
    return Sample(step, "generator", text, slot=slot, prompt=prompt, flags=("canary",))


def test_the_same_canary_before_and_now_is_preferred() -> None:
    pairs = TextPairs()
    for step in range(10):
        pairs.keep(
            [
                canary(step, "p1", f"p1 at {step}"),
                canary(step, "p1", f"other slot at {step}", slot=1),
                canary(step, "p2", f"p2 at {step}"),
                Sample(step, "generator", f"random {step}", prompt=f"q{step}", flags=("random",)),
                Sample(step, "generator", f"long {step}", prompt=f"r{step}", flags=("longest",)),
            ]
        )
    found = pairs.around("generator", 5)
    assert [(one.prompt, one.before, one.after) for one in found] == [
        ("p1", "p1 at 0", "p1 at 9"),
        ("p2", "p2 at 0", "p2 at 9"),
        ("", "long 0", "long 9"),
    ]
    assert [(one.before_step, one.after_step) for one in found] == [(0, 9)] * 3
    assert pairs.around("aggregator", 5) == ()


def test_texts_from_one_side_only_make_no_pair() -> None:
    pairs = TextPairs()
    pairs.keep([canary(5, "p", "now"), Sample(5, "generator", "x", flags=("random",))])
    assert pairs.around("generator", 5) == ()
    assert pairs.around("generator", 6) == ()


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.booleans(), st.integers(0, 30), st.integers(0, 2000)),
        max_size=80,
    )
)
def test_memory_is_bounded_and_pairs_lie_across_the_onset(
    rows: list[tuple[int, bool, int, int]],
) -> None:
    pairs = TextPairs()
    for step, followed, prompt, length in sorted(rows):
        flags = ("canary",) if followed else ("random",)
        pairs.keep([Sample(step, "r", "x" * length, prompt=f"p{prompt}", flags=flags)])
    its = pairs._roles.get("r")
    if its is not None:
        kept = [*its.first.values(), *its.latest.values(), *its.early, *its.late]
        assert len(kept) <= 32
        assert all(len(one.text) <= CLIP for one in kept)
    found = pairs.around("r", 25)
    assert len(found) <= PAIRS
    assert all(one.before_step < 25 <= one.after_step for one in found)


def test_what_is_clipped_says_so() -> None:
    assert clipped("abc", 3) == "abc"
    assert clipped("abcd", 3) == "ab…"
