import pytest

from reference_trainer.errors import SettingsError
from reference_trainer.planning.gpu import GIB, Gpu, Lengths, memory_of, problems


def test_sizes_need_a_unit() -> None:
    assert memory_of("80GB") == memory_of("80 gib") == 80 * GIB
    assert memory_of("39.6GB") == int(39.6 * GIB)
    for text in ("80", "GB", "-1GB", "0GB", "80TB", ""):
        with pytest.raises(SettingsError, match="with its unit, such as --gpu 80GB"):
            memory_of(text)


def test_every_wrong_assumption_is_named() -> None:
    assert problems(Gpu(GIB), Lengths()) == []
    wrong = Gpu(
        GIB, count=0, tflops=0, utilisation=1.5, bandwidth=-1, reading=0, tokens_per_second=0
    )
    named = problems(wrong, Lengths(0, 2))
    options = ("--gpus", "--question", "--mfu", "--reading", "--output-share", "--tflops")
    for option in (*options, "--bandwidth", "--tokens-per-second"):
        assert sum(line.startswith(option) for line in named) == 1
