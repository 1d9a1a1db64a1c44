from roledrift.cli.formats import FORMATS
from roledrift.cli.options import FailOn, Style


def test_every_format_can_be_asked_for() -> None:
    assert {one.value for one in Style} == {"text", "json", *FORMATS}
    assert [one.value.upper() for one in FailOn] == ["WARN", "ERROR"]
