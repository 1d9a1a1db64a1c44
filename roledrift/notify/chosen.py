"""The notifiers that a configuration asks for."""

from __future__ import annotations

import os
from collections.abc import Sequence

from roledrift.config import DEFAULT_WEBHOOK_ENV, NotifyConfig
from roledrift.errors import ConfigError
from roledrift.judgement import Level
from roledrift.notices import Notice
from roledrift.notify.console import ConsoleNotifier
from roledrift.notify.heartbeat import Heartbeat
from roledrift.notify.logbooks import TrackioNotifier, WandbNotifier
from roledrift.notify.webhook import WebhookNotifier
from roledrift.protocols import Closable, Notifier
from roledrift.records import RunHeader

_RANK: dict[Level, int] = {"INFO": 0, "WARN": 1, "ERROR": 2}


class AtLeast:
    """Passes on notices from a level on; closing it closes the notifier behind it.

    Args:
        level: Notices below it are not passed on. The closing of an incident is of level INFO.
        notifier: Gets the rest.
    """

    def __init__(self, level: Level, notifier: Notifier) -> None:
        self._rank, self._notifier = _RANK[level], notifier

    def notify(self, notice: Notice, header: RunHeader) -> None:
        """Pass the notice on if its level is high enough."""
        if _RANK[notice.level] >= self._rank:
            self._notifier.notify(notice, header)

    def close(self) -> None:
        """Close the notifier if it can be closed."""
        if isinstance(self._notifier, Closable):
            self._notifier.close()


def notifiers_for(settings: NotifyConfig) -> tuple[Notifier, ...]:
    """Make the console, webhook, wandb and trackio notifiers that are configured.

    Raises:
        ConfigError: If the webhook's address is none, or its variable is not set.
    """
    wanted: list[Notifier] = []
    if settings.console:
        wanted.append(ConsoleNotifier())
    others: list[Notifier] = []
    url = webhook_url(settings)
    if url:
        others.append(WebhookNotifier(url, kind=settings.webhook_kind, texts=settings.texts))
    if settings.wandb:
        others.append(WandbNotifier(texts=settings.texts))
    if settings.trackio:
        others.append(TrackioNotifier(texts=settings.texts))
    return (*wanted, *(AtLeast(settings.min_level, notifier) for notifier in others))


def webhook_url(settings: NotifyConfig) -> str:
    """Return the address that notices are sent to; empty for none.

    Raises:
        ConfigError: If the variable that was named does not hold one.
    """
    if settings.webhook:
        return settings.webhook
    url = os.environ.get(settings.webhook_env, "") if settings.webhook_env else ""
    if not url and settings.webhook_env not in ("", DEFAULT_WEBHOOK_ENV):
        raise ConfigError(
            f"notify.webhook_env: the environment variable {settings.webhook_env} is not set; "
            "set it, or leave the key out"
        )
    return url


def heartbeat_for(
    settings: NotifyConfig, notifiers: Sequence[Notifier], header: RunHeader
) -> Heartbeat | None:
    """Start a heartbeat if one is configured."""
    if not (settings.heartbeat_minutes or settings.heartbeat_steps):
        return None
    heartbeat = Heartbeat(
        notifiers, header, minutes=settings.heartbeat_minutes, steps=settings.heartbeat_steps
    )
    heartbeat.start()
    return heartbeat
