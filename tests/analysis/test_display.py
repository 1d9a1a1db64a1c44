from roledrift.analysis.display import headline, safe, table


def test_markup_control_characters_and_changes_of_direction_are_harmless() -> None:
    assert safe("<img onerror='x'>\x1b[2J\u202e&") == "&lt;img onerror=&#x27;x&#x27;&gt;[2J&amp;"


def test_an_outcome_has_its_word_and_its_colour() -> None:
    assert "#b3261e" in headline("failing", "It <fell>.")
    assert headline("", "It <fell>.") == "It &lt;fell&gt;."


def test_a_table_without_heads_has_none() -> None:
    assert "<thead>" not in table((), [["a"]])
    assert table(("<h>",), [["<b>x</b>"]]).count("<b>") == 1
