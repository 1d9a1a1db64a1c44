from pathlib import Path

import httpx
import pytest

from roledrift.errors import StoreError
from roledrift.view.folder import Folder
from roledrift.view.server import COOKIE, is_local, listen
from tests.view.conftest import served


def test_the_api_and_its_sentences(folder: Folder, runs: Path) -> None:
    with served(folder) as url, httpx.Client(base_url=url) as client:
        (first, _) = client.get("/api/runs").json()["runs"]
        run = client.get(f"/api/runs/{first['key']}", params={"s": ["length"]}).json()
        assert run["known"].endswith(f":{len(run['steps'])}")
        assert client.get(f"/api/runs/{first['key']}/texts?role=x&step=1e9").status_code == 200
        incident = {"incident": run["incidents"][0]["id"]}
        assert client.get(f"/api/runs/{first['key']}/pairs", params=incident).json()["pairs"]
        for missing in ("/api/runs/nothing", f"/api/runs/..%2f{runs.name}", "/api/runs/x/texts"):
            answer = client.get(missing)
            assert (answer.status_code, "Traceback" in answer.text) == (404, False)
        assert "no longer there" in client.get("/api/runs/nothing").json()["error"]
        for path in ("static/../server.py", "static/%2e%2e%2fserver.py", "static/x", "../etc"):
            assert client.get(path).status_code == 404
        assert client.post("/api/runs").status_code == 405
        page = client.get("/")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert page.headers["x-content-type-options"] == "nosniff"


def test_a_stranger_who_points_a_name_here_gets_nothing(folder: Folder) -> None:
    with served(folder) as url:
        answer = httpx.get(f"{url}api/runs", headers={"Host": "evil.example"})
    assert (answer.status_code, "127.0.0.1 only" in answer.text) == (421, True)


def test_a_token_guards_every_path(folder: Folder) -> None:
    with served(folder, "s3cret") as url, httpx.Client(base_url=url) as client:
        for path in ("/", "/api/runs", "/static/page.js", "/?token=wrong"):
            assert client.get(path).status_code == 403
        answer = client.get("/?token=s3cret")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert {"HttpOnly", "SameSite=strict"} <= set(answer.headers["set-cookie"].split("; "))
        assert client.cookies[COOKIE] == "s3cret"
        assert client.get("/api/runs").status_code == 200


@pytest.mark.parametrize(
    ("host", "local"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("gpu7", False)],
)
def test_only_loopback_needs_no_token(host: str, local: bool) -> None:
    assert is_local(host) == local


def test_a_port_that_is_taken_is_a_sentence() -> None:
    with listen("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        with pytest.raises(StoreError, match=rf"127.0.0.1:{port} .*--port 0 for any free one"):
            listen("127.0.0.1", port)
