"""WebDataset: tar shards in which files that share a name up to its first dot are one sample.

0001.jpg with 0001.json   {"labels": ["cat", "dog"]}, also absent_labels, unknown_labels, split, group
              0001.cls    a class: a number (a line of classes.txt beside the shards), or a name
              0001.txt    names with a delimiter or one a line; 0001.labels.txt the same, and comes first
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from manylabel.config import DataConfig
from manylabel.data.read.columns import FILE_COLUMNS, Columns
from manylabel.data.read.shard_split import splits_of_shards
from manylabel.data.read.tar_samples import LABEL_KINDS, PEEK, TarSamples, base_and_end
from manylabel.data.read.text_file import text_lines
from manylabel.data.record import Format, Reading, Record
from manylabel.data.shard.locate import (
    COMPRESSED,
    find_shards,
    is_pattern,
    refuse_compressed,
    shards_inside,
)
from manylabel.data.shard.tar_index import first_names
from manylabel.data.shard.tar_source import TarSource
from manylabel.data.walk import is_image_name
from manylabel.error import DataError

SUFFIX = ".tar"
CLASSES = "classes.txt"


def read_webdataset(path: Path, config: DataConfig) -> Reading:
    """One tar, a folder of them, or a pattern."""
    refuse_compressed(path)
    found = find_shards(path, SUFFIX)
    notes: list[str] = []
    root = path if path.is_dir() else path.parent
    splits = splits_of_shards((shard.name for shard in found), notes) if len(found) > 1 else [None]
    by_name = dict(zip((shard.name for shard in found), splits, strict=True))
    shards = TarSamples(TarSource.of(found, root), by_name, _classes(root))
    notes += [f"{index.path.name}: {index.flaw}" for index in shards.source.shards.values() if index.flaw]
    if next(shards.samples(), None) is None:
        raise DataError(f"{path} holds no image; the samples of WebDataset are files such as 0001.jpg and 0001.json")
    kind = shards.kind()
    if not kind:
        raise DataError(
            f'{path}: its images have no labels; put a .json with {{"labels": ["a", "b"]}}, a .cls or a .txt beside each '
            "(a model can tag them as they are: manylabel predict)"
        )
    layout = Columns.of((row for _, _, row in shards.rows(kind)), config, path, FILE_COLUMNS[:1])
    notes += [f"labels from .{kind}", *layout.notes]

    def records() -> Iterator[Record]:
        for shard, sample, row in shards.rows(kind):
            record = layout.record(row, sample.where)
            record.split = record.split or shards.splits[shard]
            yield record

    names = shards.classes or layout.wide or None
    return Reading(path, shards.source, records, names, layout.rest, notes=notes)


def _classes(root: Path) -> tuple[str, ...] | None:
    path = root / CLASSES
    return tuple(line.strip() for line in text_lines(path) if line.strip()) or None if path.is_file() else None


def _sniff(path: Path) -> str:
    name = path.name.lower()
    if not path.is_dir():
        if not name.endswith((SUFFIX, *COMPRESSED)):
            return ""
        return "tar file" if path.is_file() else "pattern of tar files" if is_pattern(path) else ""
    with suppress(DataError, OSError):
        found = shards_inside(path, SUFFIX)
        if found:  # an archive that somebody unpacked here and left is no shard
            return f"{len(found)} tar shards" if _looks_like_samples(found[0]) else ""
        others = [entry.name for entry in path.iterdir() if entry.suffix.lower() not in (".txt", ".md")]
        if others and all(other.lower().endswith(COMPRESSED) for other in others):
            return "compressed tar shards"
    return ""


def _looks_like_samples(path: Path) -> bool:
    ends: dict[str, set[str]] = {}
    for base, end in map(base_and_end, first_names(path, PEEK)):
        ends.setdefault(base, set()).add(end)
    return any(
        any(is_image_name(f"x.{end}") for end in sample) and sample & set(LABEL_KINDS) for sample in ends.values()
    )


FORMAT = Format("webdataset", "WebDataset", _sniff, read_webdataset)
