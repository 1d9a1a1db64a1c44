"""The configuration of the documentation, through verl's own loading of configurations."""

from pathlib import Path

import verl
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from roledrift_verl.settings import settings_of

from roledrift.config import from_mapping
from roledrift.ingest.roles import RoleMap

EXAMPLE = Path(__file__).parents[3] / "examples" / "verl_config.yaml"


def test_the_example_is_taken_by_verl() -> None:
    with initialize_config_dir(str(EXAMPLE.parent), version_base=None):
        config = compose(EXAMPLE.stem)
    settings = settings_of(config)
    assert settings is not None
    assert settings.workflow == "voting"
    assert config.actor_rollout_ref.rollout.calculate_log_probs is True
    assert config.actor_rollout_ref.actor.ppo_epochs == 1  # verl's own are there
    assert isinstance(settings.config, dict)
    assert from_mapping(settings.config).gradients.every > 0


def test_the_command_line_is_taken_by_verl() -> None:
    assert verl.__file__ is not None
    folder = str(Path(verl.__file__).parent / "trainer" / "config")
    said = [
        "+roledrift.workflow={generator: 3, aggregator: 1}",
        "+roledrift.out=runs/voting",
        "+roledrift.roles='~Solution [0-9]=aggregator,~.=generator'",
        "+roledrift.config.stop_on=[length_inflation]",
    ]
    with initialize_config_dir(folder, version_base=None):
        settings = settings_of(compose("ppo_trainer", overrides=said))
    assert settings is not None
    assert settings.workflow == {"generator": 3, "aggregator": 1}
    assert isinstance(settings.config, dict)
    assert from_mapping(settings.config).stop_on == ("length_inflation",)


def test_the_roles_in_its_comments_are_valid() -> None:
    lines = [one.strip(" #") for one in EXAMPLE.read_text().splitlines()]
    roles = [yaml.safe_load(one)["roles"] for one in lines if one.startswith("roles:")]
    assert len(roles) == 2
    assert all(RoleMap(one).rules for one in roles)
    assert OmegaConf.create(yaml.safe_load(EXAMPLE.read_text())).roledrift.workflow == "voting"
