"""The settings in force on this machine, and where each value comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from roledrift.config import Config
from roledrift.detect.settings import load
from roledrift.errors import ConfigError
from roledrift.notices import Notice
from roledrift.records import RunHeader
from roledrift.workflow import SINGLE

DEFAULT_DIR = "runs"
_FILE = "roledrift.toml"
_TEST = Notice(
    change="resumed",
    step=0,
    text="This is a test message from `roledrift doctor --test-webhook`. Notices arrive here.",
)
_OTHERS = ("ROLEDRIFT_WORKFLOW", "ROLEDRIFT_OUT", "ROLEDRIFT_ROLES")  # read by roledrift_verl


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was checked."""

    topic: str
    state: Literal["ok", "absent", "broken"]
    text: str
    advice: str = ""


def settings(*, test: bool = False) -> Sequence[Item]:
    """List configuration, environment and webhook, each with its source."""
    named, config = _config()
    variables = (_folder(), _switch("ROLEDRIFT_STRICT"), _switch("ROLEDRIFT_DISABLED"))
    return (*named, *variables, *_webhook(config, test=test), *_unknown())


def _config() -> tuple[list[Item], Config]:
    given = os.environ.get("ROLEDRIFT_CONFIG")
    if not given:
        here = Path(_FILE).is_file()
        advice = f"./{_FILE} is not read unless it is named" if here else ""
        text = "defaults (neither --config nor ROLEDRIFT_CONFIG names a file)"
        return [Item("configuration", "ok", text, advice)], Config()
    try:
        config = load(given)
    except ConfigError as error:
        return [Item("configuration", "broken", str(error), "correct the named keys")], Config()
    changed = dict(_changed(asdict(config), asdict(Config())))
    items = [Item("configuration", "ok", f"{given} (from ROLEDRIFT_CONFIG), the rest defaults")]
    items += [Item(name, "ok", f"{value} (from {given})") for name, value in changed.items()]
    return items, config


def _changed(
    values: Mapping[str, Any], defaults: Mapping[str, Any], path: str = ""
) -> Iterator[tuple[str, str]]:
    """Keys with another value than by default; secrets are not repeated."""
    for name, value in values.items():
        where = f"{path}{name}"
        default = defaults.get(name)
        if isinstance(value, Mapping):
            inner = default if isinstance(default, Mapping) else {}
            yield from _changed(value, inner, f"{where}.")
        elif value != default:
            yield where, "set" if where == "notify.webhook" else repr(value)


def _folder() -> Item:
    given = os.environ.get("ROLEDRIFT_DIR")
    folder, source = given or DEFAULT_DIR, "from ROLEDRIFT_DIR" if given else "default"
    if given and not Path(given).is_dir():
        return Item(
            "folder of runs", "absent", f"{folder} ({source}): no such directory", "make it"
        )
    return Item("folder of runs", "ok", f"{folder} ({source})")


def _switch(name: str) -> Item:
    on = os.environ.get(name, "") not in ("", "0")
    text = f"{'on' if on else 'off'} ({'environment' if name in os.environ else 'default'})"
    if on and name == "ROLEDRIFT_DISABLED":
        return Item(name, "absent", f"{text}: nothing is watched", "unset it to watch runs")
    return Item(name, "ok", text)


def _webhook(config: Config, *, test: bool) -> Iterator[Item]:
    from roledrift.notify.chosen import webhook_url
    from roledrift.notify.webhook import WebhookNotifier

    notify = config.notify
    try:
        url = webhook_url(notify)
        if not url:
            advice = "set ROLEDRIFT_WEBHOOK_URL, or webhook in [notify]" if test else ""
            yield Item("webhook", "broken" if test else "ok", "none", advice)
            return
        notifier = WebhookNotifier(url, kind=notify.webhook_kind)
    except ConfigError as error:
        yield Item("webhook", "broken", str(error), "correct it")
        return
    source = "the configuration" if notify.webhook else notify.webhook_env
    # The address is a secret: a part of it that is shown in a log is a part too many.
    host = urlsplit(url).hostname
    yield Item("webhook", "ok", f"{notifier.kind} at {host} (from {source})")
    if test:
        fault = notifier.deliver(_TEST, RunHeader(run="roledrift doctor", workflow=SINGLE))
        advice = "check the address, and whether this machine reaches it" if fault else ""
        yield Item("test message", "broken" if fault else "ok", fault or "delivered", advice)


def _unknown() -> Iterator[Item]:
    """Variables that look like ours and are none: most likely a misspelling."""
    known = [
        "ROLEDRIFT_DIR",
        "ROLEDRIFT_CONFIG",
        "ROLEDRIFT_STRICT",
        "ROLEDRIFT_DISABLED",
        "ROLEDRIFT_WEBHOOK_URL",
        "ROLEDRIFT_DEVICES",
        "ROLEDRIFT_GPU_HOUR_COST",
        *_OTHERS,
    ]
    for name in sorted(os.environ):
        if name.startswith("ROLEDRIFT_") and name not in known:
            near = get_close_matches(name, known, n=1)
            advice = f"did you mean {near[0]}?" if near else ""
            yield Item(name, "absent", "set, but roledrift knows no such variable", advice)
