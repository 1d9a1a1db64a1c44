from dataclasses import replace

import pytest

from roledrift.config import NotifyConfig
from roledrift.errors import ConfigError
from roledrift.notify.chosen import AtLeast, heartbeat_for, notifiers_for, webhook_url
from roledrift.notify.console import ConsoleNotifier
from roledrift.notify.webhook import WebhookNotifier
from tests.notify.alerts import HEADER, INCIDENT, NOTICE
from tests.notify.test_heartbeat import Keeper


def test_by_default_alerts_go_to_the_console_and_to_open_logs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ROLEDRIFT_WEBHOOK_URL", raising=False)
    console, *logs = notifiers_for(NotifyConfig())
    assert isinstance(console, ConsoleNotifier)
    assert len(logs) == 2
    for one in logs:
        one.notify(NOTICE, HEADER)  # nothing is open: nothing happens
    assert notifiers_for(NotifyConfig(console=False, wandb=False, trackio=False)) == ()


def test_the_level_holds_back_what_is_below_it_and_close_goes_through() -> None:
    posts: list[bytes] = []
    webhook = WebhookNotifier("http://x", post=lambda _url, body, _timeout: posts.append(body))
    keeper = Keeper()
    for level, passed in (("INFO", 3), ("WARN", 2), ("ERROR", 1)):
        keeper.notices.clear()
        gate = AtLeast(level, keeper)  # type: ignore[arg-type]
        suspicious = replace(NOTICE, incident=replace(INCIDENT, severity="suspicious"))
        for notice in (replace(NOTICE, change="closed"), suspicious, NOTICE):
            gate.notify(notice, HEADER)
        assert len(keeper.notices) == passed
        gate.close()
    gate = AtLeast("WARN", webhook)
    gate.notify(NOTICE, HEADER)
    gate.close()
    assert len(posts) == 1


def test_the_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLEDRIFT_WEBHOOK_URL", "https://a/b")
    assert webhook_url(NotifyConfig()) == "https://a/b"
    assert webhook_url(NotifyConfig(webhook="https://c")) == "https://c"
    assert webhook_url(NotifyConfig(webhook_env="")) == ""
    monkeypatch.delenv("ROLEDRIFT_WEBHOOK_URL")
    assert webhook_url(NotifyConfig()) == ""
    with pytest.raises(ConfigError, match="MY_HOOK is not set"):
        webhook_url(NotifyConfig(webhook_env="MY_HOOK"))


def test_a_heartbeat_beats_only_if_it_was_asked_for() -> None:
    assert heartbeat_for(NotifyConfig(), (), HEADER) is None
    heart = heartbeat_for(NotifyConfig(heartbeat_minutes=5), (), HEADER)
    assert heart is not None
    assert heart.limit == 300.0
    heart.close()
