from pathlib import Path

from roledrift.monitor.checkpoints import MOST, Checkpoints
from roledrift.records import Checkpoint


def test_news_are_what_is_there_once_something_was_written(tmp_path: Path) -> None:
    folders = {step: tmp_path / f"c-{step}" for step in (10, 20, 30)}
    for folder in folders.values():
        folder.mkdir()
    known = Checkpoints()
    assert known.news() == ()
    known.note(10, folders[10])
    known.note(20, folders[20])
    assert [one.step for one in known.news()] == [10, 20]
    assert known.news() == ()
    folders[10].rmdir()  # the host keeps only the newest
    known.note(30, str(folders[30]))
    assert known.news() == (Checkpoint(20, str(folders[20])), Checkpoint(30, str(folders[30])))


def test_urls_and_earlier_segments_count_and_the_number_is_bounded() -> None:
    known = Checkpoints()
    known.recall([Checkpoint(step, f"s3://bucket/{step}") for step in range(40)])
    known.note(40, "s3://bucket/40")
    assert [one.step for one in known.news()] == list(range(41 - MOST, 41))
