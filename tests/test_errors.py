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
