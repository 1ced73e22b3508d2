"""Parquet: shards with an image column (as `datasets` writes them, or plain bytes), or a table of labels and file names.

A folder of such files is one data set; their names say the split: train-00000-of-00012.parquet, validation-….
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from manylabel.config import DataConfig
from manylabel.data.read.arrow_rows import ROWS_AT_ONCE, ArrowTable, Part
from manylabel.data.read.shard_split import splits_of_shards
from manylabel.data.record import Format, Reading
from manylabel.data.shard.arrow_image import image_column, need_pyarrow, stored_features
from manylabel.data.shard.locate import Shard, find_shards, is_pattern, shards_inside
from manylabel.data.shard.parquet_source import ParquetSource, open_parquet
from manylabel.error import DataError

SUFFIX = ".parquet"


def read_parquet(path: Path, config: DataConfig) -> Reading:
    """One file, a folder of them, or a pattern."""
    shards = find_shards(path, SUFFIX)
    first = open_parquet(shards[0].path)
    schema = first.schema_arrow
    features = stored_features(schema.metadata)
    image = image_column(schema, features, config.ignore_columns, shards[0].path)
    notes: list[str] = []
    splits = splits_of_shards((shard.name for shard in shards), notes) if len(shards) > 1 else [None]
    parts = tuple(_part(shard, schema, split) for shard, split in zip(shards, splits, strict=True))
    table = ArrowTable(path, parts, schema, features, image, notes)
    root = path if path.is_dir() else path.parent
    return table.reading(None if image is None else ParquetSource.of(shards, image, root, config.images), config)


def _part(shard: Shard, schema: Any, split: str | None) -> Part:
    file = open_parquet(shard.path)
    other = file.schema_arrow
    if other.names != schema.names or other.types != schema.types:
        odd = sorted(set(other.names) ^ set(schema.names)) or [
            name for name in schema.names if other.field(name).type != schema.field(name).type
        ]
        raise DataError(
            f"{shard.path} has other columns than the files before it ({', '.join(map(repr, odd[:5]))}); "
            "write them alike, or name the files of one data set"
        )
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise DataError(f"{shard.path}: {schema.names.count(name)} columns are called {name!r}; keep one of them")
    return Part(shard.name, shard.path.name, file.metadata.num_rows, _batches_of(shard.path), split)


def _batches_of(path: Path) -> Callable[[Sequence[str]], Iterator[Any]]:
    def batches(columns: Sequence[str]) -> Iterator[Any]:
        pyarrow = need_pyarrow("Parquet")
        file = open_parquet(path)
        try:
            yield from file.iter_batches(ROWS_AT_ONCE, columns=list(columns), use_threads=False)
        except (pyarrow.ArrowException, OSError, ValueError, ArithmeticError, LookupError) as error:
            text = " ".join(str(error).split())[:200]
            raise DataError(f"{path} is damaged ({text}); fetch or write it again") from error

    return batches


def _sniff(path: Path) -> str:
    if path.suffix.lower() == SUFFIX:
        return "pattern of Parquet files" if is_pattern(path) else "" if path.is_dir() else "Parquet file"
    if not path.is_dir():
        return ""
    with suppress(DataError):
        found = shards_inside(path, SUFFIX)
        if found and (len(found) > 1 or _has_images(found[0])):
            return f"{len(found)} {'file' if len(found) == 1 else 'files'} {found[0].name}{' …' if found[1:] else ''}"
    return ""


def _has_images(path: Path) -> bool:
    schema = open_parquet(path).schema_arrow
    return image_column(schema, stored_features(schema.metadata), (), path) is not None


FORMAT = Format("parquet", "Parquet", _sniff, read_parquet)
