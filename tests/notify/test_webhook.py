"""Against a real HTTP server on this machine; what a network does wrong is injected."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import HTTPError

import pytest

from roledrift.errors import ConfigError
from roledrift.notify import webhook
from roledrift.notify.webhook import WebhookNotifier, payload
from tests.notify.alerts import HEADER, INCIDENT, NOTICE

URL = "https://example.org/secret-token"


class Server(HTTPServer):
    def __init__(self, answers: list[int]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.bodies = answers, []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.answers.pop(0) if self.server.answers else 200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server([])
    thread = threading.Thread(target=one.serve_forever, args=(0.02,))
    thread.start()
    yield one
    one.shutdown()
    thread.join()
    one.server_close()


def url(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/hook"


def test_an_alert_arrives_before_close_returns(server: Server) -> None:
    notifier = WebhookNotifier(url(server))
    notifier.notify(NOTICE, HEADER)
    notifier.close()
    notifier.close()
    (body,) = map(json.loads, server.bodies)
    assert body["schema"] == "roledrift.notification/2"
    assert body["alert"]["checkpoint"] == {"step": 15, "path": "out/checkpoint-15"}
    assert body["incident"]["sentence"] == body["body"].splitlines()[0] == INCIDENT.sentence
    assert "pairs" not in body["alert"]
    assert "boxed" not in json.dumps(body), "no texts unless asked"
    assert notifier.lost == 0


def test_a_server_error_is_tried_once_more(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "_PAUSE", 0.01)
    server.answers[:] = [503, 200, 429, 500]
    notifier = WebhookNotifier(url(server), texts=True)
    notifier.notify(NOTICE, HEADER)
    notifier.notify(NOTICE, HEADER)
    notifier.close()
    assert len(server.bodies) == 4
    assert notifier.lost == 1
    assert json.loads(server.bodies[0])["alert"]["pairs"][0]["before"] == "\\boxed{2}"


def test_a_refusal_is_not_tried_again_and_the_address_is_told_to_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tried = []

    def refuse(url: str, body: bytes, timeout: float) -> None:
        tried.append(body)
        raise HTTPError(url, 404, "no such hook", None, None)  # type: ignore[arg-type]

    notifier = WebhookNotifier(URL, post=refuse)
    with caplog.at_level(logging.WARNING):
        notifier.notify(NOTICE, HEADER)
        notifier.notify(NOTICE, HEADER)
        notifier.close()
    assert (len(tried), notifier.lost) == (2, 2)
    assert [one.getMessage() for one in caplog.records] == [
        "webhook at example.org: a notice was not delivered (HTTP 404)"
    ]
    assert "secret" not in caplog.text


def test_training_never_waits_and_close_waits_only_so_long() -> None:
    began, go = threading.Event(), threading.Event()

    def hang(url: str, body: bytes, timeout: float) -> None:
        began.set()
        go.wait(10)

    notifier = WebhookNotifier(URL, post=hang, patience=0.05)
    notifier.notify(NOTICE, HEADER)
    assert began.wait(5), "it is sent from another thread"
    for _ in range(70):
        notifier.notify(NOTICE, HEADER)
    assert notifier.lost == 6, "64 wait, the rest is counted"
    notifier.close()
    assert notifier.lost == 70
    notifier.notify(NOTICE, HEADER)
    assert notifier.lost == 71
    go.set()


def test_close_without_an_alert_starts_nothing() -> None:
    before = threading.active_count()
    WebhookNotifier(URL).close()
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("https://hooks.slack.com/services/T/B/x", "slack"),
        ("https://discord.com/api/webhooks/1/x", "discord"),
        ("https://ptb.discord.com/api/webhooks/1/x", "discord"),
        ("https://discord.com.example.org/x", "json"),
        ("http://localhost:8000", "json"),
    ],
)
def test_the_host_says_what_it_reads(address: str, kind: str) -> None:
    assert WebhookNotifier(address).kind == kind
    assert WebhookNotifier(address, kind="json").kind == "json"


def test_slack_and_discord_are_not_made_to_call_anybody() -> None:
    slack = payload(NOTICE, HEADER, kind="slack", texts=True)
    assert slack["text"].startswith("*voting &lt;7B&gt; failing: aggregator")
    assert "&lt;!channel&gt;" in slack["text"]
    assert "<" not in slack["text"]
    discord = payload(NOTICE, HEADER, kind="discord", texts=True)
    assert discord["allowed_mentions"] == {"parse": []}
    assert len(discord["content"]) <= 2000


@pytest.mark.parametrize("address", ["file:///etc/passwd", "hooks.slack.com/x", "http://", ""])
def test_other_addresses_are_refused_without_repeating_them(address: str) -> None:
    with pytest.raises(ConfigError, match=r"notify\.webhook") as caught:
        WebhookNotifier(address)
    assert "passwd" not in str(caught.value)
    with pytest.raises(ConfigError, match="webhook_kind"):
        WebhookNotifier(URL, kind="teams")  # type: ignore[arg-type]
