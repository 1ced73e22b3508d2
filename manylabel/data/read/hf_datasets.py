"""A folder that Hugging Face `datasets` wrote with save_to_disk. Its Arrow files are read where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.read.arrow_rows import ROWS_AT_ONCE, ArrowTable, Part
from manylabel.data.record import Format, Reading
from manylabel.data.shard.arrow_image import image_column
from manylabel.data.shard.hf_source import HfSource, hf_features, hf_parts, hf_table, is_hf_folder
from manylabel.error import DataError


def read_hf_folder(path: Path, config: DataConfig) -> Reading:
    """A Dataset or a DatasetDict; the names of its splits are the splits."""
    folders = hf_parts(path)
    first = next(iter(folders.values()))
    features = hf_features(first)
    schema = hf_table(first).schema
    image = image_column(schema, features, config.ignore_columns, first)
    split = len(folders) > 1
    parts = tuple(_part(name, folder, schema, name if split else None) for name, folder in folders.items())
    table = ArrowTable(path, parts, schema, features, image)
    return table.reading(None if image is None else HfSource.of(path, folders, image, config.images), config)


def _part(name: str, folder: Path, schema: Any, split: str | None) -> Part:
    table = hf_table(folder)
    if table.schema.names != schema.names:
        raise DataError(f"{folder} has other columns than the split before it; save them alike")
    return Part(name, folder.name, table.num_rows, partial(_batches, folder), split)


def _batches(folder: Path, columns: Sequence[str]) -> Iterator[Any]:
    table = hf_table(folder)
    chosen = table.select(list(columns))
    try:
        chosen.validate(full=True)
    except ValueError as error:
        raise DataError(f"{folder} is damaged ({str(error)[:200]}); save the data set again") from error
    yield from chosen.to_batches(max_chunksize=ROWS_AT_ONCE)


def _sniff(path: Path) -> str:
    if not path.is_dir() or not is_hf_folder(path):
        return ""
    return "dataset_dict.json" if (path / "dataset_dict.json").is_file() else "state.json, dataset_info.json"


FORMAT = Format("hf-datasets", "a folder of Hugging Face `datasets`", _sniff, read_hf_folder)
