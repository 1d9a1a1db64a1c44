import json

import pytest

from roledrift.store.decoding import decoded


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, null]}', '"\\ud800"', "1e999"])
def test_it_reads_what_json_reads(text: str) -> None:
    assert decoded(text.encode()) == json.loads(text)


def test_a_number_without_end_is_cut_and_garbage_is_a_value_error() -> None:
    assert len(str(decoded(b"9" * 5000))) == 300
    with pytest.raises(ValueError, match="Expecting"):
        decoded(b"{half")
