"""Images inside shards for those who want them one after the other, without labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from manylabel.data.shard.arrow_image import image_column, stored_features
from manylabel.data.shard.hf_source import HfSource, hf_features, hf_parts, hf_table, is_hf_folder
from manylabel.data.shard.locate import COMPRESSED, find_shards, is_pattern, refuse_compressed, shards_inside
from manylabel.data.shard.parquet_source import ParquetSource, open_parquet
from manylabel.data.shard.tar_source import TarSource
from manylabel.error import DataError

SUFFIXES = (".tar", ".parquet")


@dataclass(frozen=True)
class PackedImage:
    """One image inside a shard."""

    name: str  # 'shards/000.tar:0001.jpg'
    source: TarSource | ParquetSource | HfSource
    key: str

    def read(self, at_least: int | None = None) -> Image.Image:
        return self.source.read(self.key, at_least)


class PackedImages:
    """All images of some shards; they are named one at a time, so that millions of them need no memory."""

    def __init__(self, source: TarSource | ParquetSource | HfSource) -> None:
        self.source = source
        self._count = sum(1 for _ in source.images())

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[PackedImage]:
        return (PackedImage(name, self.source, key) for name, key in self.source.images())


def find_packed(path: Path) -> PackedImages | None:
    """The images of a shard, a pattern of shards, or a folder of shards; None for anything else."""
    if path.is_dir() and is_hf_folder(path):
        return PackedImages(_hf_source(path))
    if path.is_dir():
        kinds = [suffix for suffix in SUFFIXES if shards_inside(path, suffix)]
        if len(kinds) > 1:
            raise DataError(f"{path} holds tar and Parquet files; name those that are meant")
        suffix = kinds[0] if kinds else ""
    elif path.is_file() or is_pattern(path):
        suffix = path.suffix.lower() if path.suffix.lower() in SUFFIXES else ""
    else:
        return None
    if not suffix:
        if path.name.lower().endswith(COMPRESSED):
            refuse_compressed(path)
        return None
    found = PackedImages(_tar_source(path) if suffix == ".tar" else _parquet_source(path))
    if not len(found):
        raise DataError(f"there is no image in {path}")
    return found


def _tar_source(path: Path) -> TarSource:
    return TarSource.of(find_shards(path, ".tar"), path if path.is_dir() else path.parent)


def _parquet_source(path: Path) -> ParquetSource:
    shards = find_shards(path, ".parquet")
    schema = open_parquet(shards[0].path).schema_arrow
    column = image_column(schema, stored_features(schema.metadata), (), path)
    if column is None:
        raise DataError(f"{path} has no column with images (it has: {', '.join(schema.names)})")
    return ParquetSource.of(shards, column, path if path.is_dir() else path.parent)


def _hf_source(path: Path) -> HfSource:
    parts = hf_parts(path)
    first = next(iter(parts.values()))
    column = image_column(hf_table(first).schema, hf_features(first), (), first)
    if column is None:
        raise DataError(f"{path} has no column with images")
    return HfSource.of(path, parts, column)
