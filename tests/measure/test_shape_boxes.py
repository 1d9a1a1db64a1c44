"""The box finder skips what lies between boxes; a slow reference looks at every brace."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.measure.shape import _BRACES, _HEDGE, HEDGES, _boxes, bare_stamp, boxes, hedging

PIECES = st.sampled_from(
    ["\\boxed{", "\\boxed {", "\\boxed", "{", "}", "\\{", "\\}", "\\\\", "\\", " ", "5", "}}", "a"]
)


def every_brace(text: str) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    open_braces: list[tuple[int, int] | None] = []
    for token in _BRACES.finditer(text):
        if token.group() == "}":
            box = open_braces.pop() if open_braces else None
            if box is not None:
                found.append((*box, token.start()))
        elif token.group() == "{":
            open_braces.append(None)
        elif token.group("box"):
            open_braces.append((token.start(), token.end()))
    return sorted(found)


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_skipping_finds_the_same_boxes(text: str) -> None:
    assert _boxes(text) == every_brace(text)


@given(st.lists(PIECES, max_size=10).map("".join))
def test_a_bare_stamp_is_one_box_and_nothing_else(text: str) -> None:
    trimmed = text.strip()
    alone = [one for one in every_brace(trimmed) if one[0] == 0 and one[2] + 1 == len(trimmed)]
    assert bare_stamp(text) == any(bool(trimmed[begin:end].strip()) for _, begin, end in alone)
    assert bool(boxes(text)) == any(bool(text[b:e].strip()) for _, b, e in every_brace(text))


WORDS = st.sampled_from([*HEDGES, "the", "THIS IS WRONG", "await", "ſecond", "let\nme  reconsider"])


@given(st.lists(WORDS, max_size=6).map(" ".join))
def test_the_look_before_the_search_changes_nothing(text: str) -> None:
    assert hedging(text) == (_HEDGE.search(text) is not None)
