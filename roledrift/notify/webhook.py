"""Send notices to a web address: Slack, Discord, or any program that takes JSON.

A thread of its own sends; training never waits for it. What cannot be sent is tried once more,
then counted and named once on the log. Addresses of webhooks are secrets: they appear in no
message and in no file.
"""

from __future__ import annotations

import atexit
import json
import logging
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Any, Literal, get_args
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from roledrift.codec import plain
from roledrift.errors import ConfigError
from roledrift.notices import Notice
from roledrift.notify import message
from roledrift.records import RunHeader

_LOG = logging.getLogger("roledrift")

Kind = Literal["auto", "json", "slack", "discord"]
Post = Callable[[str, bytes, float], None]
"""Send a body to an address within seconds; raises OSError or HTTPException if that fails."""

_DISCORD_LIMIT, _SLACK_LIMIT = 2000, 3000
_QUEUE = 64
_PAUSE = 1.0


class WebhookNotifier:
    """Sends notices from a daemon thread; a :class:`~roledrift.protocols.Notifier`.

    Args:
        url: Where to; ``http`` or ``https``.
        kind: What the other side understands; ``auto`` tells Slack and Discord by their host.
        texts: Also send the texts that a notice carries. They leave the machine then.
        timeout: Seconds that one attempt may take.
        patience: Seconds that :meth:`close` waits for what is still unsent.
        post: Sends one request; for tests and unusual transports.

    Raises:
        ConfigError: If the address is none for the web, or ``kind`` is unknown.
    """

    def __init__(
        self,
        url: str,
        *,
        kind: Kind = "auto",
        texts: bool = False,
        timeout: float = 10.0,
        patience: float = 5.0,
        post: Post | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            # The address itself may hold a token: only its scheme is repeated.
            raise ConfigError(
                f"notify.webhook: needs an http(s) address, got one that begins with "
                f"{parts.scheme or url[:4]!r}"
            )
        if kind not in get_args(Kind):
            raise ConfigError(f"notify.webhook_kind: one of {list(get_args(Kind))}, got {kind!r}")
        self.kind = _kind(parts.hostname) if kind == "auto" else kind
        self.lost = 0
        """Notices that were not delivered."""
        self._url, self._host = url, parts.hostname
        self._texts, self._timeout, self._patience = texts, timeout, patience
        self._post = post or _post
        self._queue: queue.Queue[bytes | None] = queue.Queue(_QUEUE)
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._named = False

    def notify(self, notice: Notice, header: RunHeader) -> None:
        """Queue a notice; if too many wait already, count it as lost."""
        if self._over.is_set():
            self._lose("it came after close()")
            return
        body = json.dumps(payload(notice, header, kind=self.kind, texts=self._texts)).encode()
        try:
            self._queue.put_nowait(body)
        except queue.Full:
            self._lose(f"{_QUEUE} notices are waiting already")
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="roledrift webhook", daemon=True)
            self._thread.start()
            # The process may leave right after the alert that stopped it.
            atexit.register(self.close)

    def deliver(self, notice: Notice, header: RunHeader) -> str:
        """Send one notice in this thread; return why it failed, empty if it was accepted."""
        body = json.dumps(payload(notice, header, kind=self.kind, texts=self._texts)).encode()
        try:
            self._post(self._url, body, self._timeout)
        except (OSError, HTTPException, ValueError) as error:
            return _answer(error)
        return ""

    def close(self) -> None:
        """Send what is queued, for at most ``patience`` seconds. Calling it again does nothing."""
        if self._over.is_set():
            return
        self._over.set()
        if self._thread is None:
            return
        atexit.unregister(self.close)
        with suppress(queue.Full):  # if it is full, the thread looks at _over once it is empty
            self._queue.put_nowait(None)
        self._thread.join(self._patience)
        if self._thread.is_alive():
            self._lose("the run ended first", self._queue.qsize() or 1)

    def _run(self) -> None:
        while True:
            try:
                body = self._queue.get(timeout=_PAUSE if self._over.is_set() else None)
            except queue.Empty:
                return
            if body is None:
                return
            self._send(body)

    def _send(self, body: bytes) -> None:
        for attempt in (1, 2):
            try:
                self._post(self._url, body, self._timeout)
                return
            except (OSError, HTTPException, ValueError) as error:
                if attempt == 2 or not _worth_another_try(error):
                    self._lose(_answer(error))
                    return
            self._over.wait(_PAUSE)

    def _lose(self, why: str, times: int = 1) -> None:
        self.lost += times
        if not self._named:
            self._named = True
            _LOG.warning("webhook at %s: a notice was not delivered (%s)", self._host, why)


def payload(
    notice: Notice, header: RunHeader, *, kind: str, texts: bool = False
) -> Mapping[str, Any]:
    """Build the request body: for ``json`` incident and alert, else one readable message."""
    subject, body = message.subject(notice, header), message.body(notice, header, texts=texts)
    if kind == "slack":
        text = f"*{_slack(subject)}*\n{_slack(body)}"
        return {"text": text[:_SLACK_LIMIT]}
    if kind == "discord":
        # Nobody is to be called by what a model wrote.
        return {
            "content": f"**{subject}**\n{body}"[:_DISCORD_LIMIT],
            "allowed_mentions": {"parse": []},
        }
    alert = None if notice.alert is None else plain(notice.alert)
    if alert is not None and not texts:
        alert.pop("pairs", None)
    return {
        "schema": "roledrift.notification/2",
        "run": header.run,
        "host": header.host,
        "workflow": header.workflow.name,
        "change": notice.change,
        "level": notice.level,
        "step": notice.step,
        "subject": subject,
        "body": body,
        "incident": None if notice.incident is None else plain(notice.incident),
        "alert": alert,
    }


def _slack(text: str) -> str:
    """Slack reads ``<...>`` as links and calls: these three are all it asks to escape."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _kind(host: str) -> str:
    if host == "hooks.slack.com" or host == "hooks.slack-gov.com":
        return "slack"
    names = ("discord.com", "discordapp.com")
    return "discord" if any(host == name or host.endswith("." + name) for name in names) else "json"


def _post(url: str, body: bytes, timeout: float) -> None:
    headers = {"Content-Type": "application/json", "User-Agent": "roledrift"}
    # The scheme was checked when the notifier was made.
    with urlopen(Request(url, data=body, headers=headers), timeout=timeout) as answer:
        answer.read(1024)


def _worth_another_try(error: Exception) -> bool:
    """A refusal stays one; a busy or broken server, or a lost connection, may come back."""
    return not isinstance(error, HTTPError) or error.code == 429 or error.code >= 500


def _answer(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return f"HTTP {error.code}"
    reason = getattr(error, "reason", None)
    return str(reason) if isinstance(reason, OSError) else type(error).__name__
