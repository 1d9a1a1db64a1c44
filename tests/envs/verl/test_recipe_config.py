"""The recipe's configurations, as verl reads them, against the reference trainer's grid."""

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf
from roledrift_verl.settings import settings_of
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.utils.config import omega_conf_to_dataclass, validate_config
from verl_recipe.cell import cell_of, read_recipe

from reference_trainer.config import Config, from_mapping
from reference_trainer.errors import SettingsError
from reference_trainer.grid import Cell, cell_settings, cells, load_grid

FOLDER = Path(__file__).parents[3] / "examples" / "verl_recipe" / "config"
SHARED = [one for one in cells(("0.6B", "1.7B", "4B")) if one.routing in ("sp", "sa")]
# A scale changes the model and the name of the run: the others are compared in one cell each.
COMPARED = [
    one for one in SHARED if one.scale == "1.7B" or (one.workflow, one.task) == ("voting", "math")
]


def composed(*said: str) -> DictConfig:
    with initialize_config_dir(str(FOLDER), version_base=None):
        config = compose("paper_sp", overrides=list(said))
    OmegaConf.resolve(config)
    return config


def of_the_grid(cell: Cell) -> Config:
    return from_mapping(cell_settings(load_grid("paper"), cell))


def of_verl(config: DictConfig) -> dict[str, Any]:
    """What a configuration of verl says, in the words of the grid."""
    actor, rollout = config.actor_rollout_ref.actor, config.actor_rollout_ref.rollout
    return {
        "model.path": config.actor_rollout_ref.model.path,
        "lora.rank": config.actor_rollout_ref.model.lora_rank,
        "lora.alpha": config.actor_rollout_ref.model.lora_alpha,
        "rollout.problems": config.data.train_batch_size,
        "rollout.copies": rollout.n,
        "rollout.temperature": (rollout.temperature, rollout.val_kwargs.temperature),
        "rollout.max_new_tokens": rollout.response_length,
        "rules.max_prompt_tokens": rollout.prompt_length,
        "longest row": rollout.max_model_len,
        "train.steps": config.trainer.total_training_steps,
        "train.minibatch": actor.ppo_mini_batch_size * rollout.n,
        "train.epochs": actor.ppo_epochs,
        "train.aggregation": actor.loss_agg_mode,
        "train.clip": (actor.clip_ratio_low, actor.clip_ratio_high, actor.clip_ratio_c),
        "adam": (actor.optim.lr, actor.optim.lr_warmup_steps, actor.optim.lr_scheduler_type),
        "adam more": (actor.optim.weight_decay, actor.optim.clip_grad),
        "validation.every": config.trainer.test_freq,
        "validation.problems": config.data.val_max_samples,
        "checkpoint": (config.trainer.save_freq, config.trainer.max_actor_ckpt_to_keep),
    }


def of_reference(config: Config) -> dict[str, Any]:
    train, adam, clip = config.train, config.train.adam, config.train.clip
    longest = config.rules.max_prompt_tokens + config.rollout.max_new_tokens
    return {
        "model.path": config.model.path,
        "lora.rank": config.lora.rank,
        "lora.alpha": config.lora.alpha,
        "rollout.problems": config.rollout.problems,
        "rollout.copies": config.rollout.copies,
        "rollout.temperature": (config.rollout.temperature, config.rollout.temperature),
        "rollout.max_new_tokens": config.rollout.max_new_tokens,
        "rules.max_prompt_tokens": config.rules.max_prompt_tokens,
        "longest row": longest,
        "train.steps": train.steps,
        "train.minibatch": train.minibatch,
        "train.epochs": train.epochs,
        "train.aggregation": train.aggregation,
        "train.clip": (clip.low, clip.high, clip.dual),
        "adam": (adam.lr, adam.warmup_steps, adam.schedule),
        "adam more": (adam.weight_decay, adam.max_grad_norm),
        "validation.every": config.validation.every,
        "validation.problems": config.validation.problems,
        "checkpoint": (config.checkpoint.every, config.checkpoint.keep),
    }


def test_there_are_the_papers_cells_of_a_shared_policy() -> None:
    assert len(SHARED) == 3 * 2 * (3 + 1)  # three workflows and the control
    files = {kind: {one.stem for one in (FOLDER / kind).iterdir()} for kind in ("task", "workflow")}
    assert files["task"] == {one.task for one in SHARED}
    assert files["workflow"] == {one.workflow for one in SHARED}
    assert {one.name for one in (FOLDER / "scale").iterdir()} == {
        f"{one.scale}.yaml" for one in SHARED
    }


@pytest.mark.parametrize("cell", COMPARED, ids=lambda cell: str(cell.name))
def test_a_cell_is_that_of_the_grid(cell: Cell) -> None:
    config = composed(f"workflow={cell.workflow}", f"task={cell.task}", f"scale={cell.scale}")
    wanted = of_the_grid(cell)
    assert of_verl(config) == of_reference(wanted)
    assert config.actor_rollout_ref.actor.ppo_max_token_len_per_gpu >= (
        config.actor_rollout_ref.rollout.max_model_len
    )
    recipe = read_recipe(
        OmegaConf.to_container(config.recipe),  # type: ignore[arg-type]
        {"rules": {"max_prompt_tokens": config.data.max_prompt_length}, "model": {"path": "x"}},
    )
    for part in ("workflow", "task", "prompts", "rules", "paper_compat", "sandbox"):
        assert getattr(recipe, part) == getattr(wanted, part)
    assert recipe.rollout.lenient_selection == wanted.rollout.lenient_selection
    settings = settings_of(config)
    assert settings is not None
    assert settings.workflow == cell.workflow


def test_verl_takes_the_configuration() -> None:
    """verl's own checks, before it loads anything."""
    # With LoRA it also asks vLLM, which is not here, whether the rank is one of its own.
    config = composed("actor_rollout_ref.model.lora_rank=0")
    critic, reference = need_critic(config), need_reference_policy(config)
    assert (critic, reference) == (False, False)
    validate_config(config, use_reference_policy=reference, use_critic=critic)
    rollout = omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
    assert rollout.agent.agent_loop_manager_class == "verl_recipe.loop.RecipeManager"


def test_mistakes_in_the_recipe_end_before_the_first_episode() -> None:
    from verl_recipe.loop import RecipeManager

    wrong = composed("+recipe.rules.voter=2", "+recipe.rollout={max_new_tokens: 9}")
    with pytest.raises(SettingsError, match=r"set by verl's data\.max_response_length"):
        RecipeManager.create(config=wrong, llm_client=None, reward_loop_worker_handles=[])
    with pytest.raises(SettingsError, match=r"voter"):
        cell_of(composed("+recipe.rules.voter=2"))
    with pytest.raises(SettingsError, match="use_v1"):
        cell_of(composed("trainer.use_v1=false"))


def test_answers_are_graded_in_verls_environment() -> None:
    """verl's Hydra needs an older antlr than math-verify asks for by default."""
    row = {
        "raw_prompt": [{"role": "user", "content": "What is 1 divided by 2?"}],
        "reward_model": {"ground_truth": "0.5"},
        "extra_info": {"index": 4},
    }
    problem, task = cell_of(composed()).posed(row)
    assert problem.question == "What is 1 divided by 2?"
    right, wrong = (task.grade(problem, f"so \\boxed{{\\frac{{1}}{{{n}}}}}") for n in (2, 3))
    assert (right.correct, wrong.correct) == (True, False)
