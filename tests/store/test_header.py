import pytest

from roledrift.errors import SchemaError
from roledrift.store.header import refuse_newer


def test_only_a_newer_schema_is_refused() -> None:
    refuse_newer(1, "run.json")
    refuse_newer(None, "run.json")
    with pytest.raises(SchemaError, match=r"run.json is written in schema 9"):
        refuse_newer(9, "run.json")
