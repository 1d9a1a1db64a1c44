import pytest

from reference_trainer.__main__ import main


def test_a_plan_is_printed_and_its_exit_code_says_whether_it_fits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cell = "paper/voting-ip-code-0.6B"
    assert main(["plan", cell, "--gpu", "80GB"]) == 0
    said = capsys.readouterr().out
    for part in ("base weights", "adapters", "gradients", "activations", "engine", "total"):
        assert f"\n  {part} " in said
    assert "500 iterations: " in said
    assert "assumed: " in said
    assert f"python -m reference_trainer train {cell} " in said
    assert main(["plan", cell, "--gpu", "80GB", "--gpus", "8"]) == 0
    assert "torchrun --nproc_per_node 8 -m reference_trainer train" in capsys.readouterr().out
    assert main(["plan", cell, "--gpu", "4GB"]) == 1
    said = capsys.readouterr().out
    assert "does not fit: " in said
    assert "take a larger GPU" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["paper/nothing", "--gpu", "80GB"], "no cell 'nothing' in grid 'paper'"),
        (["nothing", "--gpu", "80GB"], "neither a TOML or JSON file nor a preset"),
        (["paper/voting-ip-code-0.6B", "--gpu", "80"], "with its unit, such as --gpu 80GB"),
        (["paper/voting-ip-code-0.6B", "--gpu", "80GB", "--gpus", "0"], "--gpus must be"),
        (["paper/voting-ip-code-0.6B"], "this machine has no GPU: say which is meant"),
    ],
)
def test_wrong_input_is_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *arguments]) == 2
    assert message in capsys.readouterr().err
