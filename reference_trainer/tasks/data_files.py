"""Tables of a data set from a file, a folder or the hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roledrift import RoleDriftError

_SUFFIXES = (".parquet", ".jsonl", ".json")


class DataError(RoleDriftError, ValueError):
    """A data set cannot be read; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class Halves:
    """Tables to train and to test on; ``named`` ids carry the split, since each counts from 0."""

    train: Any
    test: Any
    named: bool = False


def read_table(source: str | Path, config: str | None) -> Any:
    """The rows as one ``datasets.Dataset``, each with its number in ``row_number``."""
    datasets = _library()
    files = _files(source, config)
    if files is not None:
        return _read(files)
    try:
        table = datasets.load_dataset(str(source), config, split="train")
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise DataError(
            f"there is no file or folder {source}, and as an id on the hub (configuration "
            f"{config!r}) it cannot be read: {error}. Give the path of a file or folder in "
            "task.source"
        ) from error
    return _numbered(table, source)


def _read(files: list[Path]) -> Any:
    datasets = _library()
    kind = "parquet" if files[0].suffix == ".parquet" else "json"
    names = [str(file) for file in files]
    try:
        table = datasets.load_dataset(kind, data_files=names, split="train")
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        cause = str(error.__cause__ or error).split("\n")[0]
        raise DataError(
            f"{', '.join(names)} cannot be read as {kind}: {cause}. Download or write it again"
        ) from error
    return _numbered(table, names[0])


def _library() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise DataError(
            "reading data sets needs the package `datasets`: pip install datasets"
        ) from error
    return datasets


def _numbered(table: Any, source: str | Path) -> Any:
    if len(table) == 0:
        raise DataError(f"{source} has no rows: give a file that has some in task.source")
    return table.add_column("row_number", list(range(len(table))))


def fixed_splits(source: str | Path) -> Halves | None:
    """The splits of a folder with one file ``train`` and one ``test``; None without them."""
    for suffix in _SUFFIXES:
        train, test = (Path(source) / f"{name}{suffix}" for name in ("train", "test"))
        if train.is_file() and test.is_file():
            return Halves(_read([train]), _read([test]), named=True)
    return None


def _files(source: str | Path, config: str | None) -> list[Path] | None:
    """Files of a local source; None for an id on the hub."""
    path = Path(source)
    if path.is_file():
        if path.suffix not in _SUFFIXES:
            raise DataError(f"{path} is no data file; expected one of {', '.join(_SUFFIXES)}")
        return [path]
    if path.is_dir():
        # A snapshot of the hub has a folder per configuration.
        folder = path / config if config and (path / config).is_dir() else path
        for suffix in _SUFFIXES:
            files = sorted(file for file in folder.rglob(f"*{suffix}") if "_verl" not in file.stem)
            if files:
                return files
        raise DataError(f"{path} holds no {', '.join(_SUFFIXES)} files")
    if isinstance(source, Path) or path.suffix in _SUFFIXES or str(source).count("/") != 1:
        raise DataError(
            f"{source} is neither a file, a folder nor a hub id of the form owner/name: give one "
            "of these in task.source"
        )
    return None
