from pathlib import Path

from roledrift.report.publish import log_report
from tests.cli.runs import write_run


class Writer:
    """Takes what a TensorBoard ``SummaryWriter`` takes."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def add_text(self, tag: str, text: str) -> None:
        self.texts[tag] = text


def test_the_report_goes_to_what_is_open_and_may_be_kept(tmp_path: Path) -> None:
    run = write_run(tmp_path / "drift", inflate_from=15)
    assert log_report(run) == ()
    writer = Writer()
    assert log_report(run, out=tmp_path / "report", writer=writer) == ("tensorboard",)
    assert "length" in writer.texts["roledrift-drift"]
    assert (tmp_path / "report/index.html").is_file()
