from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from roledrift.cli.formats import FORMATS
from roledrift.cli.options import Style, with_options


@dataclass(frozen=True)
class How:
    times: Annotated[int, typer.Option("--times", help="How often.")] = 1
    loud: Annotated[bool, typer.Option("--loud")] = False


app = typer.Typer()


@app.command()
@with_options(How)
def say(word: str, how: How) -> None:
    """Say a word."""
    typer.echo((word.upper() if how.loud else word) * how.times)


def test_every_field_is_an_option() -> None:
    assert CliRunner().invoke(app, ["ab", "--times", "2", "--loud"]).output == "ABAB\n"
    assert CliRunner().invoke(app, ["ab"]).output == "ab\n"
    assert CliRunner().invoke(app, ["ab", "--times", "x"]).exit_code == 2


def test_help_is_that_of_the_verb_and_its_fields() -> None:
    told = CliRunner().invoke(app, ["--help"]).output
    assert "Say a word." in told
    assert "How often." in told


def test_every_format_can_be_asked_for() -> None:
    assert {one.value for one in Style} == {"text", *FORMATS}
