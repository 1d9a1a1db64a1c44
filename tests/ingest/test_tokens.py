from pathlib import Path

import pytest

from roledrift.errors import ConfigError
from roledrift.ingest import sniff
from roledrift.ingest.importing import import_run, job_for
from roledrift.ingest.tokens import counter
from roledrift.store.reader import open_run
from tests.ingest.test_verl import dump


def tokenizer(folder: Path) -> Path:
    """A tokenizer that counts words, as the real library writes it."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    folder.mkdir()
    made.save(str(folder / "tokenizer.json"))
    return folder


def test_tokens_are_counted_where_the_source_does_not(tmp_path: Path) -> None:
    folder = tokenizer(tmp_path / "t")
    assert counter(str(folder))("a b  c") == 3
    assert counter(str(folder / "tokenizer.json"))("") == 0
    source = dump(tmp_path / "s", output="a b c")
    job = job_for(source, tokenizer=str(folder))
    import_run(sniff(source), job, tmp_path / "run")
    run = open_run(tmp_path / "run")
    record = run.steps()[0]
    assert record.mean("*", "length") == 3
    assert "unit of length" not in record.labels
    assert str(folder) in run.header.notes["lengths"]


def test_a_tokenizer_that_is_none(tmp_path: Path) -> None:
    broken = tmp_path / "tokenizer.json"
    broken.write_text("{}")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        counter(str(broken))
