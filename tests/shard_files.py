"""Photos packed into shards, as other tools write them, for tests."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from conftest import write_photos

from manylabel.data.table import Table
from manylabel.labels import PRESENT

Sample = tuple[str, bytes, list[str]]  # name, JPEG, labels


def make_samples(folder: Path, count: int) -> list[Sample]:
    """Photos with the labels of their colours."""
    labels = write_photos(folder, count)
    files = sorted((folder / "images").glob("*.jpg"))
    return [(file.stem, file.read_bytes(), names) for file, names in zip(files, labels, strict=True)]


def labels_of(table: Table) -> list[list[str]]:
    """The present labels of each image."""
    return [[table.labels.names[i] for i in (row == PRESENT).nonzero()[0]] for row in table.matrix]


def write_tar(path: Path, files: Iterable[tuple[str, bytes]], layout: int = tarfile.USTAR_FORMAT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=layout) as tar:
        for name, data in files:
            facts = tarfile.TarInfo(name)
            facts.size = len(data)
            tar.addfile(facts, io.BytesIO(data))
    return path


def tar_files(samples: Iterable[Sample], **more: Any) -> list[tuple[str, bytes]]:
    """image and .json of each sample, one after the other."""
    return [
        file
        for name, image, labels in samples
        for file in ((f"{name}.jpg", image), (f"{name}.json", json.dumps({"labels": labels} | more).encode()))
    ]


def write_tar_shards(folder: Path, samples: list[Sample], shards: int = 3) -> Path:
    for i in range(shards):
        write_tar(folder / f"shard-{i:03d}.tar", tar_files(samples[i::shards]))
    return folder


def parquet_table(samples: Iterable[Sample]) -> Any:
    """As `datasets` writes images: struct{bytes, path}, and a list of names."""
    import pyarrow

    samples = list(samples)
    images = [{"bytes": image, "path": f"{name}.jpg"} for name, image, _ in samples]
    columns = {
        "image": pyarrow.array(images, pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])),
        "labels": pyarrow.array([labels for *_, labels in samples], pyarrow.list_(pyarrow.string())),
    }
    return pyarrow.table(columns)


def write_parquet_shards(folder: Path, samples: list[Sample], shards: int = 2, group: int = 5) -> Path:
    import pyarrow.parquet as parquet

    folder.mkdir(parents=True, exist_ok=True)
    for i in range(shards):
        table = parquet_table(samples[i::shards])
        parquet.write_table(table, folder / f"part-{i:05d}-of-{shards:05d}.parquet", row_group_size=group)
    return folder
