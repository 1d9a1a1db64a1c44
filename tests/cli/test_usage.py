import pytest

from roledrift.cli.main import main


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["chek", "x"], "Did you mean"),
        (["xyzzy"], "There are check, ls"),
        (["view", "x", "--prot", "1"], "--port"),
        (["view", "x", "--port", "99999"], "65535"),
    ],
)
def test_a_mistyped_command_is_a_sentence(
    typed: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(typed) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
