import json
from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.store.reader import open_run
from roledrift.view.folder import IN_MEMORY, Folder, key_of
from roledrift.view.judging import ImmediateJudge
from tests.view.conftest import Writing


def test_the_worst_is_first_with_the_sentence_of_every_output(folder: Folder, runs: Path) -> None:
    listing = folder.listing()
    first, second = listing["runs"]
    incident = open_run(runs / "b-grows").incidents()[0]
    assert (first["name"], second["name"]) == ("b-grows", "a-healthy")
    assert (first["outcome"], first["sentence"]) == (incident.outcome, incident.sentence)
    assert (first["state"], second["state"]) == ("open", "finished")
    assert second["outcome"] in ("clean", "no verdict")
    assert listing == folder.listing()
    assert not set(json.dumps(listing, ensure_ascii=False)) & set("\x1b\u202e")


def test_the_document_has_the_incident_and_the_curve_of_its_cause(folder: Folder) -> None:
    (first, _) = folder.listing()["runs"]
    document = folder.document(first["key"], ["reward"])
    (incident, *_) = document["incidents"]
    assert incident["sentence"] == first["sentence"]
    assert incident["statistics"][0] in {one["statistic"] for one in document["series"]}
    assert folder.pairs(first["key"], incident["id"])["pairs"]
    assert "no longer" in folder.pairs(first["key"], "x")["note"]


def test_runs_appear_are_damaged_are_of_a_newer_version_and_vanish(tmp_path: Path) -> None:
    folder = Folder([str(tmp_path)], ImmediateJudge())
    assert (folder.listing()["runs"], len(folder.listing()["problems"])) == ([], 1)
    writing = Writing(tmp_path / "x").go_on(4)
    before = folder.listing()
    (row,) = before["runs"]
    assert (row["last_step"], row["key"]) == (3, key_of(tmp_path / "x"))
    writing.go_on(1)
    assert folder.listing()["version"] != before["version"]
    header = (tmp_path / "x" / "run.json").read_text()
    for content, said in (("{", "not readable as JSON"), ('{"v": 99}', "install a newer")):
        (tmp_path / "x" / "run.json").write_text(content)
        (row,) = folder.listing()["runs"]
        assert (row["outcome"], said in row["sentence"]) == ("unreadable", True)
        with pytest.raises((StoreError, ValueError), match=said):
            folder.document(row["key"])
    (tmp_path / "x" / "run.json").write_text(header)
    assert folder.listing()["runs"][0]["outcome"] != "unreadable"
    (tmp_path / "x").rename(tmp_path.parent / "elsewhere")
    assert folder.listing()["runs"] == []
    with pytest.raises(StoreError, match="no longer there"):
        folder.document(row["key"])


def test_a_folder_that_vanishes_is_a_sentence(tmp_path: Path) -> None:
    place = tmp_path / "runs"
    place.mkdir()
    folder = Folder([str(place)])
    place.rmdir()
    assert "no such directory" in folder.listing()["problems"][0]


@pytest.mark.parametrize("path", ["nowhere", "s3://bucket/runs"])
def test_what_cannot_be_followed_is_refused_at_the_start(path: str) -> None:
    with pytest.raises(StoreError):
        Folder([path])


def test_a_run_without_steps_has_no_verdict(tmp_path: Path) -> None:
    Writing(tmp_path / "x").close()
    (row,) = Folder([str(tmp_path)]).listing()["runs"]
    assert (row["outcome"], row["state"]) == ("no verdict", "empty")


def test_a_bounded_number_of_runs_stays_in_memory(tmp_path: Path) -> None:
    for number in range(IN_MEMORY + 2):
        Writing(tmp_path / f"r{number:02d}").go_on(1).close()
    folder = Folder([str(tmp_path)])
    keys = [row["key"] for row in folder.listing()["runs"]]
    first, second = folder.run(keys[0]), folder.run(keys[1])
    for key in keys[2:]:
        folder.run(key)
        assert folder.run(keys[0]) is first
    assert folder.run(keys[1]) is not second
