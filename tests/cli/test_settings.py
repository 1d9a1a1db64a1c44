from __future__ import annotations

import threading
from pathlib import Path

import pytest

from roledrift.cli.settings import settings
from tests.notify.test_webhook import Server, url


def seen() -> dict[str, tuple[str, str, str]]:
    return {one.topic: (one.state, one.text, one.advice) for one in settings()}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROLEDRIFT_WEBHOOK_URL", raising=False)


def test_by_default_everything_is_the_default() -> None:
    found = seen()
    assert {state for state, _, _ in found.values()} == {"ok"}
    assert found["folder of runs"][1] == "runs (default)"
    assert found["ROLEDRIFT_STRICT"][1] == "off (default)"
    assert found["webhook"][1] == "none"


def test_a_file_that_lies_here_and_is_not_read_is_named() -> None:
    Path("roledrift.toml").write_text("close_after = 3\n")
    assert "is not read unless it is named" in seen()["configuration"][2]


def test_each_value_with_its_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    secret = "https://hooks.slack.com/services/T0/B0/secret"
    file.write_text(f'close_after = 3\n[baseline]\nwindow = 12\n[notify]\nwebhook = "{secret}"\n')
    monkeypatch.setenv("ROLEDRIFT_CONFIG", str(file))
    monkeypatch.setenv("ROLEDRIFT_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("ROLEDRIFT_STRICT", "0")
    monkeypatch.setenv("ROLEDRIFT_DISABLED", "1")
    found = seen()
    assert found["baseline.window"][1] == f"12 (from {file})"
    assert found["close_after"][1] == f"3 (from {file})"
    assert found["webhook"][1] == "slack at hooks.slack.com (from the configuration)"
    assert "secret" not in str(found)
    assert found["folder of runs"][0] == "absent"
    assert found["ROLEDRIFT_STRICT"][1] == "off (environment)"
    assert found["ROLEDRIFT_DISABLED"][1] == "on (environment): nothing is watched"


def test_what_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROLEDRIFT_CONFIG", str(tmp_path / "no.toml"))
    monkeypatch.setenv("ROLEDRIFT_WEBHOOK_URL", "ftp://secret")
    monkeypatch.setenv("ROLEDRIFT_CONFIGG", "x")
    found = seen()
    assert found["configuration"][0] == "broken"
    assert found["webhook"][0] == "broken"
    assert "secret" not in str(found)
    assert found["ROLEDRIFT_CONFIGG"][2] == "did you mean ROLEDRIFT_CONFIG?"


def test_a_message_is_sent_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.state for one in settings(test=True) if one.topic == "webhook"] == ["broken"]
    server = Server([])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.setenv("ROLEDRIFT_WEBHOOK_URL", url(server))
    try:
        seen()
        assert server.bodies == []
        server.answers[:] = [200, 404]
        told = [one for _ in range(2) for one in settings(test=True) if one.topic == "test message"]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert [(one.state, one.text) for one in told] == [("ok", "delivered"), ("broken", "HTTP 404")]
    assert b"Notices arrive here" in server.bodies[0]
