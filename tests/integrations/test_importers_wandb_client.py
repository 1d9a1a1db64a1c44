"""wandb's own client, in a process of its own, asks a server on this machine."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.ingest import remote
from roledrift.ingest.importing import job_for
from roledrift.store.reader import open_run
from tests.ingest.wandb_server import KEY, serving

ROWS = [
    {"train/global_step": 10 * (n + 1), "train/reward": 0.05 * n, "train/grad_norm": 0.3}
    for n in range(1200)
]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(ROWS, {"seed": 3}) as address:
        yield address


def ask(home: Path, server: str, *arguments: str, key: str = KEY, **more: str) -> tuple[int, str]:
    """``roledrift`` with these arguments, as somebody whose home and settings are empty.

    ``more`` are variables of the environment.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    names = ("HOME", "WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR")
    env = clean | {name: str(home) for name in names} | {"WANDB_BASE_URL": server} | more
    done = subprocess.run(
        [sys.executable, "-m", "roledrift", *arguments],
        env=env | ({"WANDB_API_KEY": key} if key else {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_run_is_read_whole(server: str, tmp_path: Path) -> None:
    code, said = ask(
        tmp_path, server, "import", "wandb://ent/proj/runs/r1", "-o", str(tmp_path / "run")
    )
    assert code == 0, said
    run = open_run(tmp_path / "run")
    steps = run.steps()
    assert [one.step for one in steps] == [row["train/global_step"] for row in ROWS]
    assert steps[-1].totals["reward"] == ROWS[-1]["train/reward"]
    assert (run.header.run, run.header.seed) == ("brave-fox", 3)
    assert run.header.notes["imported from"].startswith("wandb://ent/proj/runs/r1 as wandb")


def test_verbs_take_the_address(server: str, tmp_path: Path) -> None:
    code, said = ask(tmp_path, server, "check", "wandb://ent/proj/r1")
    assert (code, "wandb://ent/proj/r1: no verdict" in said) == (3, True), said


@pytest.mark.parametrize(
    ("address", "key", "told"),
    [
        ("wandb://ent/proj/nosuch", KEY, "no run 'nosuch' in 'ent/proj'"),
        ("wandb://ent/proj/r1", "", "not logged in"),
        ("wandb://ent/proj/r1", "b" * 40, "refuses the API key"),
    ],
)
def test_what_is_in_the_way_is_said(
    server: str, tmp_path: Path, address: str, key: str, told: str
) -> None:
    code, said = ask(tmp_path, server, "check", address, key=key)
    (line,) = [one for one in said.splitlines() if one.startswith("roledrift: ")]
    assert (code, line.startswith(f"roledrift: {address}: "), told in line) == (2, True, True), said


def test_without_network(tmp_path: Path) -> None:
    with serving([], {}) as address:
        pass  # now nobody listens there
    wait = {"WANDB_HTTP_TIMEOUT": "2"}  # seconds for which the client tries again, 19 by default
    code, said = ask(tmp_path, address, "check", "wandb://ent/proj/r1", **wait)
    assert (code, "cannot be reached" in said, "local folder" in said) == (2, True, True), said


@pytest.mark.parametrize("address", ["wandb://", "wandb://run", "wandb://a/b/c/d"])
def test_an_address_that_names_no_run(address: str) -> None:
    form = remote(address)
    assert form is not None
    with pytest.raises(StoreError, match="wandb://ENTITY/PROJECT/RUN"):
        list(form.read(job_for(Path("x"), address=address)))


def test_without_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    form = remote("wandb://a/b/c")
    assert form is not None
    with pytest.raises(StoreError, match="pip install wandb"):
        list(form.read(job_for(Path("x"), address="wandb://a/b/c")))
