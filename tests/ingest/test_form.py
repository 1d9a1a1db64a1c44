from pathlib import Path

import pytest

from roledrift.ingest import formats
from roledrift.ingest.form import Format, Job
from roledrift.ingest.importing import import_run
from roledrift.ingest.rows import Events, SpanRow, StepDone
from roledrift.store.reader import open_run


def test_a_format_of_ones_own_is_one_object(tmp_path: Path) -> None:
    def read(job: Job) -> Events:
        for step, line in enumerate(job.source.read_text().split()):
            role, slot = job.roles.resolve("writer")
            yield SpanRow(step, role, slot, tokens=len(line))
            yield StepDone(step)

    mine = Format("words", "words", lambda path: "words" if path.suffix == ".words" else None, read)
    (tmp_path / "a.words").write_text("one three")
    source = tmp_path / "a.words"
    import_run((mine, mine.sniff(source) or ""), Job(source), tmp_path / "run")
    assert [one.mean("writer", "length") for one in open_run(tmp_path / "run").steps()] == [3, 5]


@pytest.mark.parametrize("form", formats().values(), ids=formats())
def test_every_format_says_what_it_is(form: Format, tmp_path: Path) -> None:
    assert form.title
    assert form.sniff(tmp_path) is None
