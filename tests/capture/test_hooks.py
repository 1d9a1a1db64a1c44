"""A hook that a model can be copied and saved with, and that ends with its object."""

import copy
import io

import torch
from torch import nn

from roledrift.capture.hooks import WeakHook


class Watcher:
    def __init__(self, module: nn.Module) -> None:
        self.seen = 0
        self.file = open("/dev/null")  # noqa: SIM115 - what can be neither copied nor pickled
        module.register_forward_hook(WeakHook(self.after))

    def after(self, _module: nn.Module, _args: object, y: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        return 2 * y


def test_it_lives_as_long_as_its_object_and_copies_do_nothing() -> None:
    layer, x = nn.Linear(2, 2), torch.ones(1, 2)
    plain = layer(x)
    watcher = Watcher(layer)
    assert torch.equal(layer(x), 2 * plain)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    for other in (copy.deepcopy(layer), torch.load(file, weights_only=False)):
        assert torch.equal(other(x), plain)
    assert watcher.seen == 1
    watcher.file.close()
    del watcher
    assert torch.equal(layer(x), plain)
