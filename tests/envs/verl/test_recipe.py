"""The recipe in verl: its data set, agent loop, load balancer, TransferQueue, trainer and actor.

Only the engine is ours (``engine.py``): vLLM needs a GPU here.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import ray
import transfer_queue as tq
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf
from verl.single_controller.ray.base import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
from verl.trainer.ppo.utils import create_rl_dataset
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.utils import tensordict_utils as tu
from verl.utils.dataset.rl_dataset import collate_fn
from verl.workers.rollout.llm_server import LLMServerClient
from verl.workers.rollout.router import get_router_handle
from verl_recipe.cell import cell_of
from verl_recipe.loop import RecipeManager
from verl_recipe.prepare import main as prepare
from verl_recipe.rows import row_of

from reference_trainer.episodes import Episode
from reference_trainer.rollout.engine import Sampling
from reference_trainer.rollout.player import Stage, play_episodes
from reference_trainer.tasks import Problem
from reference_trainer.tasks.unit_tests import UnitTest
from roledrift.store.reader import open_run
from tests.envs.verl.actor import CPUActor
from tests.envs.verl.engine import ScriptedEngine, Server, tiny_qwen3
from tests.envs.verl.test_v1 import logged, queue_with

RECIPE = Path(__file__).parents[3] / "examples" / "verl_recipe"
PROBLEMS, ROLLOUTS, LONGEST = 4, 4, 10
PLAYED = 8
ROLES = {
    "voting": {"generator", "aggregator"},
    "eval_opt": {"generator", "evaluator"},
    "orch_workers": {"orchestrator", "worker", "synthesizer"},
}


@pytest.fixture(scope="module", autouse=True)
def queue() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # As the README says: Ray's workers inherit it.
        path = os.environ.get("PYTHONPATH", "")
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(RECIPE.parent), path))))
        yield from queue_with(cpus=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model and the data."""
    made = tmp_path_factory.mktemp("recipe")
    tiny_qwen3(made / "model")
    assert prepare(["math", "--out", str(made / "data"), "--rows", "8", "4"]) == 0
    return made


def tiny(folder: Path, workflow: str, *more: str) -> DictConfig:
    """The paper's configuration, on a model of 58 k parameters and the CPU."""
    said = [
        f"workflow={workflow}",
        "recipe.task={name: math}",
        "recipe.prompts=tiny",
        f"actor_rollout_ref.model.path={folder / 'model'}",
        "actor_rollout_ref.rollout.agent.num_workers=1",
        f"actor_rollout_ref.rollout.n={ROLLOUTS}",
        f"data.train_files={folder / 'data' / 'train.parquet'}",
        f"data.val_files={folder / 'data' / 'validation.parquet'}",
        "data.dataloader_num_workers=0",
        f"data.train_batch_size={PROBLEMS}",
        "data.max_prompt_length=96",
        f"data.max_response_length={LONGEST}",
        "trainer.n_gpus_per_node=1",
        *more,
    ]
    with initialize_config_dir(str(RECIPE / "config"), version_base=None):
        config = compose("paper_sp", overrides=said)
    OmegaConf.resolve(config)
    return config


class LocalClient(LLMServerClient):
    """verl's client with one server, in this process instead of behind a load balancer."""

    def __init__(self, config: DictConfig, server: Server) -> None:
        super().__init__(config)
        self.server = SimpleNamespace(generate=SimpleNamespace(remote=server.generate))

    async def _acquire_server(self, request_id: str, **_: Any) -> tuple[str, Any]:
        return "server", self.server

    def _release_server(self, server_id: str, request_id: str | None = None) -> None:
        """There is one."""


def played(config: DictConfig) -> tuple[dict[str, int], Any]:
    """Rows that verl's worker puts into the queue for the first problems, by their keys."""
    dataset = create_rl_dataset(config.data.train_files, config.data, None, None)
    batch = collate_fn([dataset[index] for index in range(PLAYED)])
    batch["uid"] = np.array([f"problem{index}" for index in range(PLAYED)], dtype=object)
    data = tu.get_tensordict(batch)
    tu.assign_non_tensor_data(data, "global_steps", 1)
    model, heat = Path(config.actor_rollout_ref.model.path), config.actor_rollout_ref.rollout
    server = Server(model, temperature=heat.temperature, longest=LONGEST, by_prompt=True)
    agent = config.actor_rollout_ref.rollout.agent
    agent.agent_loop_config_path = str(RECIPE / "loops.yaml")
    agent.default_agent_loop = "workflow"

    async def all_of_them() -> None:
        # The class of the actor: its own process would take longer to start than to play.
        worker = AgentLoopWorkerTQ.__ray_metadata__.modified_class(
            config, LocalClient(config, server), reward_loop_worker_handles=[]
        )
        await worker.generate_sequences(data)
        await asyncio.gather(*worker.background_tasks)

    asyncio.run(all_of_them())
    tags = tq.kv_list("train")["train"]
    assert {tags[uid]["status"] for uid in batch["uid"]} == {"finished"}
    keys = sorted(key for key in tags if key.count("_") == 2)
    rows = tq.kv_batch_get(keys, "train")
    tq.kv_clear(keys=list(tags), partition_id="train")
    return {key: row for row, key in enumerate(keys)}, rows


def by_the_reference_trainer(config: DictConfig) -> list[Episode]:
    """The same problems, played by the reference trainer on the same engine."""
    cell = cell_of(config)
    engine = ScriptedEngine(
        Path(config.actor_rollout_ref.model.path),
        temperature=config.actor_rollout_ref.rollout.temperature,
        longest=LONGEST,
        by_prompt=True,
    )
    stage = Stage(cell.script, cell.config.routed(), cell.scene, engine, engine.tokenizer)
    task = cell.config.task
    problems = [(index, task.problem("train", index)) for index in range(PLAYED)]  # type: ignore[union-attr]
    sampling = Sampling(config.actor_rollout_ref.rollout.temperature, LONGEST)
    return play_episodes(stage, problems, copies=ROLLOUTS, sampling=sampling, seed=0)


@pytest.mark.parametrize("workflow", list(ROLES))
def test_rows_are_those_of_the_reference_trainer(folder: Path, workflow: str) -> None:
    config = tiny(folder, workflow)
    keys, rows = played(config)
    episodes = by_the_reference_trainer(config)
    assert {span.role for one in episodes for span in one.spans} == ROLES[workflow]
    assert {one.correct for one in episodes} == {True, False}
    assert len(keys) == sum(len(one.spans) for one in episodes)
    columns = {name: rows[name].unbind() for name in ("prompts", "responses", "rm_scores")}
    columns |= {name: rows[name].unbind() for name in ("rollout_log_probs", "response_mask")}
    for episode in episodes:
        for number, span in enumerate(episode.spans):
            row = keys[f"problem{episode.problem}_{episode.copy}_{number}"]
            assert columns["prompts"][row].tolist() == list(span.prompt_ids)
            assert columns["responses"][row].tolist() == list(span.output_ids)
            assert columns["rollout_log_probs"][row].tolist() == pytest.approx(span.logp_rollout)
            assert columns["response_mask"][row].tolist() == [1] * len(span.output_ids)
            score = columns["rm_scores"][row].tolist()
            assert score == [0.0] * (len(score) - 1) + [span.reward]
            extra = rows["extra_fields"][row]
            wanted = (span.role, span.slot, span.turn, span.finish_reason, span.correct)
            names = ("role", "slot", "turn", "finish_reason", "correct")
            assert tuple(extra[name] for name in names) == wanted
            assert extra["parse"] == span.parse.how


def test_too_long_prompts_leave_no_row(folder: Path) -> None:
    config = tiny(folder, "voting", "data.max_prompt_length=14")
    keys, rows = played(config)
    episodes = by_the_reference_trainer(config)
    assert {name for one in episodes for name in one.overflowed} == {"aggregator"}
    assert len(keys) == sum(len(one.spans) for one in episodes) > 0
    assert {extra["role"] for extra in rows["extra_fields"]} == {"generator"}
    assert float(sum(one.sum() for one in rows["rm_scores"].unbind())) == 0.0


class Trainer(PPOTrainer):
    """verl's trainer with its own data loader, replay buffer and validation, without GPUs."""

    def __init__(self, config: DictConfig, workers: Any) -> None:
        super().__init__(config)
        self._init_tokenizer()
        self._init_dataloader()
        self._init_dump_executor()
        self.actor_rollout_wg = self.ref_policy_wg = workers
        self.ref_in_actor = True
        self.reward_loop_manager = SimpleNamespace(reward_loop_worker_handles=[])
        self._load_checkpoint()

    def on_step_end(self) -> None:
        """The servers keep the weights of the beginning."""

    def on_sample_end(self) -> None:
        """Nothing sleeps."""

    def _get_n_gpus_for_throughput(self) -> int:
        return 1


@pytest.fixture
def trainee(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DictConfig:
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(tmp_path / "log.jsonl"))
    plain = {f"{name}_dtype": "fp32" for name in ("param", "reduce", "buffer")}
    config = tiny(
        folder,
        "voting",
        "trainer.total_training_steps=2",
        "trainer.test_freq=1",
        "trainer.save_freq=-1",
        "trainer.val_before_train=false",
        "trainer.logger=[file]",
        f"trainer.default_local_dir={tmp_path}",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={PROBLEMS}",
        "actor_rollout_ref.actor.optim.lr=0.01",
        "actor_rollout_ref.actor.optim.lr_warmup_steps=0",
        "actor_rollout_ref.actor.use_dynamic_bsz=false",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8",
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8",
        "actor_rollout_ref.actor.fsdp_config.use_torch_compile=false",
        "actor_rollout_ref.model.lora_rank=4",
        "+roledrift.config.gradients={every: 1}",
    )
    OmegaConf.set_struct(config, False)
    config.actor_rollout_ref.model.override_config = {"attn_implementation": "sdpa"}
    config.actor_rollout_ref.actor.fsdp_config.mixed_precision = plain
    return config


def test_two_steps_of_verls_trainer(trainee: DictConfig, folder: Path, tmp_path: Path) -> None:
    made = RayClassWithInitArgs(
        cls=ray.remote(CPUActor), config=trainee.actor_rollout_ref, role="actor"
    )
    pool = RayResourcePool([1], use_gpu=False, max_colocate_count=1)
    actors = RayWorkerGroup(pool, made, device_name="cpu")
    actors.init_model()
    trainer = Trainer(trainee, actors)
    server = (
        ray.remote(Server)
        .options(num_cpus=0)
        .remote(folder / "model", temperature=0.7, longest=LONGEST)
    )
    client = LLMServerClient(trainee, get_router_handle(servers={"server": server}))
    manager = RecipeManager.create(config=trainee, llm_client=client, reward_loop_worker_handles=[])
    trainer.fit(manager)

    logs = [row for row in logged(tmp_path) if "actor/grad_norm" in row]
    assert [row["training/global_step"] for row in logs] == [1, 2]
    run = open_run(tmp_path / "roledrift")
    records = list(run.steps())
    assert [dict(one.faults) for one in records] == [{}, {}]
    counts = {"generator": 3 * PROBLEMS * ROLLOUTS, "aggregator": PROBLEMS * ROLLOUTS}
    for row, record in zip(logs, records, strict=True):
        for role, count in counts.items():
            length = record.stat(role, "length")
            assert length is not None
            assert length.n == count
        assert 0 < record.totals["reward"] < 1
        assert record.totals["reward"] == pytest.approx(row["critic/score/mean"])
        # verl's validation saw the last row of every episode, which carries the outcome.
        assert record.totals["val_accuracy"] == row["val-core/math/acc/mean@1"]
        (gram,) = record.gradients
        # Four optimizer steps: the norm of their mean gradient, and the mean of their norms.
        norm = np.sqrt(np.array(gram.products).sum())
        assert 0 < norm < row["actor/grad_norm"]
    # The engine's log-probabilities are the actor's until the weights move: ids are in place.
    for role in counts:
        assert records[0].mean(role, "rollout.k3") == pytest.approx(0, abs=1e-6)
        assert (records[1].mean(role, "rollout.k3") or 0) > 1e-6
    assert {one.role for one in run.samples()} == set(counts)
    programs = tiny(folder, "voting", "recipe.task={name: deepcoder}", "recipe.prompts=chat-code")

    def graded(_worker: Any, config: DictConfig) -> list[bool]:
        problem = Problem("p1", "Add two numbers.", "")
        tests = (UnitTest("stdin_stdout", "2 3\n", "5\n"),)
        row = row_of(problem, 0, source="deepcoder", split="train", tests=tests)
        problem, task = cell_of(config).posed(row)
        written = ["a, b = map(int, input().split()); print(a + b)", "print(6)"]
        return [task.grade(problem, f"```python\n{one}\n```").correct for one in written]

    (worker,) = manager.agent_loop_workers
    assert ray.get(worker.__ray_call__.remote(graded, programs)) == [True, False]
    for actor in (*actors.workers, worker, server):
        ray.kill(actor)
