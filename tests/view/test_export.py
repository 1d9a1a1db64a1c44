import json
import re
from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.view.export import export
from roledrift.view.folder import Folder


def data(path: Path) -> dict[str, object]:
    match = re.fullmatch(r'roledriftData\("\w+", (.*)\);\n', path.read_text(), re.DOTALL)
    assert match is not None
    return json.loads(match[1])  # type: ignore[no-any-return]


def test_a_copy_holds_the_list_and_every_run(folder: Folder, tmp_path: Path) -> None:
    page, *files = export(folder, tmp_path / "site")
    assert page.name == "index.html"
    assert 'data-source="static"' in page.read_text()
    assert all(file.stat().st_size for file in files)
    listing = data(tmp_path / "site" / "data" / "runs.js")
    (first, _) = listing["runs"]  # type: ignore[misc]
    body = data(tmp_path / "site" / "data" / f"{first['key']}.js")
    assert len(body["run"]["steps"]) == 40  # type: ignore[index]
    assert all(one["pairs"] for one in body["pairs"].values())  # type: ignore[attr-defined]
    assert body["texts"]
    assert export(folder, tmp_path / "site")[0] == page


def test_a_damaged_run_is_a_sentence_and_a_bad_place_too(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "runs" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "x" / "run.json").write_text("{")
    export(Folder([str(tmp_path / "runs")]), tmp_path / "site")
    (one,) = (tmp_path / "site" / "data").glob("[0-9a-f]*.js")
    assert "not readable as JSON" in str(data(one)["error"])
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        export(folder, tmp_path / "file" / "site")
