"""What verl loads: importing this module is the whole installation.

verl imports it while it is itself being imported, in every process, workers and rollout servers
included. So nothing of verl is imported here: four modules of verl are changed when, and only
where, they are imported. A trainer is watched only if it is configured to be, and workers measure
only what a watched trainer asks for.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any

from roledrift_verl.wire import ORDER, REPORT, ROLE

if TYPE_CHECKING:
    from roledrift_verl.batch import Rows
    from roledrift_verl.watch import Watch

_WATCHED: list[Watch] = []
"""The training of this process, if it is watched: some of verl's functions are not told which."""

_MARK, _AROUND = "__roledrift__", "__roledrift_around__"


def install() -> None:
    """Change what verl has imported already, and the rest when it is imported."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
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
        watch = _watch_of(self)
        if watch is None:
            return

        def read() -> Rows:
            from roledrift_verl.update import Queued

            keys = call["batch"]
            kept = watch.kept(keys.keys)
            return Queued(module, self, keys).read() if kept is None else kept

        with watch.monitor.fenced("validation"):  # also where a subclass validates its own way
            watch.validated(call["metrics"])
        with watch.monitor.fenced("record"):  # arguments may have other names in the next verl
            call["metrics"].update(watch.record(read, int(call["global_steps"])))

    def updating(self: Any, call: Mapping[str, Any]) -> AbstractContextManager[None] | None:
        from roledrift_verl.update import Queued

        watch = _watch_of(self)
        if watch is not None:
            with watch.monitor.fenced("update"):
                return watch.updating(Queued(module, self, call["batch"]))
        return None

    _after(trainer, "_compute_metrics", measured)
    _around(trainer, "_update_actor", updating)
    original: Callable[..., Any] = vars(module)["reduce_metrics"]
    if hasattr(original, _MARK):
        return

    @wraps(original)
    def reduce_metrics(metrics: dict[str, Any]) -> Any:
        _hear(metrics)
        return original(metrics)

    setattr(reduce_metrics, _MARK, True)
    vars(module)["reduce_metrics"] = reduce_metrics


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

    def updating(self: Any, call: Mapping[str, Any]) -> AbstractContextManager[None] | None:
        from roledrift_verl.update import Padded

        watch = _watch_of(self)
        if watch is not None:
            with watch.monitor.fenced("update"):
                return watch.updating(Padded(self, call["batch"], score))
        return None

    def updated(_self: Any, _call: Mapping[str, Any], result: Any) -> None:
        _hear((getattr(result, "meta_info", None) or {}).get("metrics"))

    if not hasattr(trainer, "_compute_old_log_prob"):
        return  # verl 0.6 has both inline: neither entropy nor the update is seen there
    score = trainer._compute_old_log_prob
    score = getattr(score, "__wrapped__", score)
    _after(trainer, "_compute_old_log_prob", scored)
    _after(trainer, "_update_actor", updated)
    _around(trainer, "_update_actor", updating)


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


def _change_engine(module: ModuleType) -> None:
    """``verl.workers.engine.base``: in the workers, since verl 0.7."""
    original: Callable[..., Any] = module.BaseEngine.train_batch
    if hasattr(original, _MARK):
        return

    @wraps(original)
    def train_batch(self: Any, data: Any, loss_function: Any) -> Any:
        keys = data.keys()
        if ROLE not in keys or ORDER not in keys:  # nobody asks, or this is the critic
            return original(self, data, loss_function)
        from roledrift_verl.worker import train_batch as followed

        return followed(original, self, data, loss_function)

    setattr(train_batch, _MARK, True)
    module.BaseEngine.train_batch = train_batch


_CHANGES: Mapping[str, Callable[[ModuleType], None]] = {
    "verl.trainer.ppo.v1.trainer_base": _change_v1,
    "verl.trainer.ppo.ray_trainer": _change_legacy,
    "verl.trainer.ppo.metric_utils": _change_metrics,
    "verl.workers.engine.base": _change_engine,
}


def _is_legacy(trainer: Any) -> bool:
    return not hasattr(trainer, "_compute_metrics")


def _attach(trainer: type[Any]) -> None:
    """What both trainers share: knowing the step, validations, checkpoints, the end."""

    def loaded(self: Any, _call: Mapping[str, Any], _result: Any) -> None:
        # Only here, because workers and rollout servers load this module too.
        from roledrift_verl.settings import settings_of
        from roledrift_verl.watch import Watch

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
            watch.finish()
            _WATCHED.clear()

    _after(trainer, "_load_checkpoint", loaded)
    _after(trainer, "_validate", validated)
    _after(trainer, "_save_checkpoint", saved)
    _after(trainer, "fit", ended)


def _watch_of(trainer: Any) -> Watch | None:
    return next((watch for watch in _WATCHED if watch.trainer is trainer), None)


def _hear(metrics: dict[str, Any] | None) -> None:
    """Take the workers' reports out of what verl is about to average."""
    for key in [key for key in metrics or {} if key.endswith(REPORT)]:
        reports = (metrics or {}).pop(key)
        if _WATCHED:
            _WATCHED[0].hear(reports)


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


def _around(
    owner: type[Any],
    name: str,
    enter: Callable[[Any, Mapping[str, Any]], AbstractContextManager[None] | None],
) -> None:
    """Run a method of verl inside ``enter(self, arguments by name)``, where that is not None."""
    original = getattr(owner, name)
    if hasattr(original, _AROUND):
        return
    signature = inspect.signature(original)

    @wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        inside = enter(self, signature.bind(self, *args, **kwargs).arguments)
        if inside is None:
            return original(self, *args, **kwargs)
        with inside:
            return original(self, *args, **kwargs)

    setattr(call, _AROUND, True)
    setattr(owner, name, call)


install()
