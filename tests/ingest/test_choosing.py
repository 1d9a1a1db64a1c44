from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.ingest import formats
from roledrift.ingest.choosing import RunPath, chosen, only, place
from roledrift.ingest.form import Job
from roledrift.ingest.tree import Found, find
from tests.ingest.logs import unpacked


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return unpacked("trackio/grpo.db.gz", tmp_path)


def found(path: Path) -> list[Found]:
    return find(path, formats())


def test_a_run_behind_a_path(database: Path) -> None:
    assert place(f"{database}#brave-fox") == RunPath(database, "brave-fox")
    assert place(str(database)) == RunPath(database)
    hashed = database.parent / "a#b"
    hashed.touch()
    assert place(str(hashed)) == RunPath(hashed), "a file may be called so"
    assert place("no/such#file") == RunPath(Path("no/such#file"))


def test_by_name_and_by_id(database: Path) -> None:
    every = found(database)
    assert [one.name for one in chosen(RunPath(database), every)] == ["brave-fox", "calm-owl"]
    (owl,) = chosen(RunPath(database, "calm-owl"), every)
    (same,) = chosen(RunPath(database, owl.sources[0].part[0]), every)
    assert owl == same


def test_none_of_that_name(database: Path) -> None:
    with pytest.raises(StoreError, match="no run 'nobody'; it holds brave-fox, calm-owl"):
        chosen(RunPath(database, "nobody"), found(database))
    with pytest.raises(StoreError, match="no run 'x'; it does not name its runs"):
        chosen(RunPath(database, "x"), [])


def test_two_of_one_name_are_told_apart_by_their_ids(database: Path) -> None:
    import sqlite3

    with sqlite3.connect(database) as opened:
        opened.execute("UPDATE metrics SET run_name = 'same'")
    every = found(database)
    ids = [one.sources[0].part[0] for one in every]
    assert {one.name for one in every} == {f"same-{run}" for run in ids}
    with pytest.raises(StoreError, match=f"2 runs called 'same': say .*{ids[0]}"):
        chosen(RunPath(database, "same"), every)
    assert chosen(RunPath(database, ids[1]), every) == [every[1]]


def test_a_database_below_a_folder_is_found(database: Path) -> None:
    folder = database.parent / "project" / "logs"
    folder.mkdir(parents=True)
    database.rename(folder / "grpo.db")
    assert [one.name for one in found(folder.parent)] == ["brave-fox", "calm-owl"]


def test_what_a_reader_may_read() -> None:
    job = Job(Path("p.db"))
    assert only(job, {"1": "a"}) == "1"
    assert only(Job(Path("p.db"), part=("2",)), {"1": "a", "2": "b"}) == "2"
    with pytest.raises(StoreError, match="holds no run"):
        only(job, {})
    many = {str(n): f"run{n}" for n in range(20)}
    with pytest.raises(StoreError, match=r"holds 20 runs .*run11 and 8 more.*'p\.db#run0'"):
        only(job, many)
