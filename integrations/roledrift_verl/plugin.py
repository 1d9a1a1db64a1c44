"""What verl loads: importing this module is the whole installation.

verl imports it while it is itself being imported, in every process, workers and rollout servers
included. So nothing of verl is imported here: three modules of verl are changed when, and only
where, they are imported, and a trainer is watched only if it is configured to be.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roledrift_verl.batch import Rows
    from roledrift_verl.watch import Watch

_WATCHED: list[Watch] = []
"""The training of this process, if it is watched: some of verl's functions are not told which."""

_MARK = "__roledrift__"


def install() -> None:
    """Change what verl has imported already, and the rest when it is imported."""
    if not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    for name, change in _CHANGES.items():
        module = sys.modules.get(name)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            change(module)


class _Finder(MetaPathFinder):
    """Finds the modules of verl that are changed, as Python does, and changes them when loaded."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Python's own finding, with the change put behind the loading."""
        if fullname not in _CHANGES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Changing(spec.loader, _CHANGES[fullname])
        return spec


class _Changing(Loader):
    """A loader that changes the module when it is complete."""

    def __init__(self, loader: Loader, change: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the loader itself."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then change it."""
        self._loader.exec_module(module)
        self._change(module)


def _change_v1(module: ModuleType) -> None:
    """``verl.trainer.ppo.v1.trainer_base``: verl's trainer since 0.9."""
    trainer = module.PPOTrainer
    _attach(trainer)

    def measured(self: Any, call: Mapping[str, Any], _result: Any) -> None:
        watch, keys = _watch_of(self), call["batch"]
        if watch is None:
            return

        def read() -> Rows:
            from roledrift_verl.batch import FIELDS, from_queue

            data = module.tq.kv_batch_get(
                keys=keys.keys, partition_id=keys.partition_id, select_fields=list(FIELDS)
            )
            return from_queue(data, keys.keys, keys.tags)

        with watch.monitor.fenced("validation"):  # also where a subclass validates its own way
            watch.validated(call["metrics"])
        call["metrics"].update(watch.record(read, int(call["global_steps"])))

    _after(trainer, "_compute_metrics", measured)


def _change_legacy(module: ModuleType) -> None:
    """``verl.trainer.ppo.ray_trainer``: the trainer up to 0.8, kept since."""
    trainer = module.RayPPOTrainer
    _attach(trainer)

    def scored(self: Any, _call: Mapping[str, Any], result: Any) -> None:
        watch = _watch_of(self)
        if watch is None:
            return
        with watch.monitor.fenced("entropy"):
            data = result[0] if isinstance(result, tuple) else result
            watch.entropy = data.batch["entropys"]

    if hasattr(trainer, "_compute_old_log_prob"):  # verl 0.6 has it inline: no entropy there
        _after(trainer, "_compute_old_log_prob", scored)


def _change_metrics(module: ModuleType) -> None:
    """``verl.trainer.ppo.metric_utils``: where trainers of their own fit() find the statistics."""
    original: Callable[..., Any] = vars(module)["compute_data_metrics"]
    if hasattr(original, _MARK):
        return

    @wraps(original)
    def compute_data_metrics(batch: Any, *args: Any, **kwargs: Any) -> Any:
        metrics = original(batch, *args, **kwargs)
        if not _WATCHED or not _is_legacy(_WATCHED[0].trainer):
            return metrics
        watch = _WATCHED[0]
        entropy, watch.entropy = watch.entropy, None

        def read() -> Rows:
            from roledrift_verl.batch import from_data_proto

            return from_data_proto(batch, entropy=entropy)

        return {**metrics, **watch.record(read, int(watch.trainer.global_steps))}

    setattr(compute_data_metrics, _MARK, True)
    vars(module)["compute_data_metrics"] = compute_data_metrics


_CHANGES: Mapping[str, Callable[[ModuleType], None]] = {
    "verl.trainer.ppo.v1.trainer_base": _change_v1,
    "verl.trainer.ppo.ray_trainer": _change_legacy,
    "verl.trainer.ppo.metric_utils": _change_metrics,
}


def _is_legacy(trainer: Any) -> bool:
    return not hasattr(trainer, "_compute_metrics")


def _attach(trainer: type[Any]) -> None:
    """What both trainers share: knowing the step, validations, checkpoints, the end."""

    def loaded(self: Any, _call: Mapping[str, Any], _result: Any) -> None:
        # Only here, because workers and rollout servers load this module too.
        from roledrift_verl.watch import Watch, settings_of

        _WATCHED.clear()
        settings = settings_of(self.config)
        if settings is not None:
            _WATCHED.append(Watch(self, settings))

    def validated(self: Any, _call: Mapping[str, Any], result: Any) -> None:
        watch = _watch_of(self)
        if watch is not None and isinstance(result, Mapping):
            with watch.monitor.fenced("validation"):
                watch.validated(result)

    def saved(self: Any, _call: Mapping[str, Any], _result: Any) -> None:
        watch = _watch_of(self)
        if watch is not None:
            with watch.monitor.fenced("checkpoint"):
                watch.saved()

    def ended(self: Any, _call: Mapping[str, Any], _result: Any) -> None:
        watch = _watch_of(self)
        if watch is not None:
            watch.monitor.close()
            _WATCHED.clear()

    _after(trainer, "_load_checkpoint", loaded)
    _after(trainer, "_validate", validated)
    _after(trainer, "_save_checkpoint", saved)
    _after(trainer, "fit", ended)


def _watch_of(trainer: Any) -> Watch | None:
    return next((one for one in _WATCHED if one.trainer is trainer), None)


def _after(
    owner: type[Any], name: str, then: Callable[[Any, Mapping[str, Any], Any], None]
) -> None:
    """Call ``then(self, arguments by name, result)`` behind a method of verl."""
    original = getattr(owner, name)
    if hasattr(original, _MARK):
        return
    signature = inspect.signature(original)

    @wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        then(self, signature.bind(self, *args, **kwargs).arguments, result)
        return result

    setattr(call, _MARK, True)
    setattr(owner, name, call)


install()
