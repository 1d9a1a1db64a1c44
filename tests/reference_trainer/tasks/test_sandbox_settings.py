from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reference_trainer.config import from_mapping
from reference_trainer.errors import SettingsError
from reference_trainer.setup import prepare
from reference_trainer.tasks import sandbox_settings
from reference_trainer.tasks.sandbox import Sandbox
from reference_trainer.tasks.sandbox_settings import SandboxSettings, open_sandbox


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """The sandbox of a machine without namespaces, Landlock and seccomp."""
    with Sandbox("rlimits", workers=1, seccomp=False, landlock=False) as one:
        monkeypatch.setattr(sandbox_settings, "_started", lambda workers, library: one)
        yield one


def test_a_run_does_not_start_below_its_floor(bare: Sandbox, tmp_path: Path) -> None:
    code = from_mapping({"task": {"name": "code"}})
    with pytest.raises(SettingsError, match=r"below sandbox\.floor = 'confined'"):
        prepare(code, cache=tmp_path)
    assert not list(tmp_path.iterdir()), "nothing was warmed up before the refusal"
    assert open_sandbox(SandboxSettings(floor="rlimits")) is bare


def test_settings_reach_the_programs() -> None:
    settings = SandboxSettings(workers=1, seconds=2.5, memory_gib=0.5)
    assert open_sandbox(settings).workers == 1
    assert open_sandbox(settings) is open_sandbox(replace(settings, seconds=1.0))
    assert (settings.limits.seconds, settings.limits.memory) == (2.5, 1 << 29)


@pytest.mark.parametrize(
    "wrong", [{"workers": -1}, {"seconds": 0}, {"floor": "none"}, {"library": ["nowhere"]}]
)
def test_wrong_settings_are_named(wrong: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=r"sandbox\."):
        from_mapping({"sandbox": wrong})
