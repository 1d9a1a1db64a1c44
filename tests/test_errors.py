import pytest

from roledrift import errors


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.ConfigError, ValueError),
        (errors.CaptureError, ValueError),
        (errors.SchemaError, ValueError),
        (errors.AttachError, RuntimeError),
        (errors.StoreError, OSError),
    ],
)
def test_every_error_is_ours_and_the_builtin_it_refines(
    error: type[Exception], builtin: type[Exception]
) -> None:
    assert issubclass(error, errors.RoleDriftError)
    with pytest.raises(builtin, match="what to do"):
        raise error("what was wrong, what to do")


def test_a_notebook_shows_the_sentence_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    error = errors.StoreError("runs/x: no such directory; give one")
    assert error._render_traceback_() == ["StoreError: runs/x: no such directory; give one"]
    monkeypatch.setenv("ROLEDRIFT_STRICT", "1")
    with pytest.raises(errors.StoreError) as raised:
        raise error
    assert "Traceback" in "".join(raised.value._render_traceback_())
