"""Images in a column of Parquet files. A row group is read as a whole, so that the order of reading matters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.data.file_stamp import file_stamp
from manylabel.data.shard.arrow_image import Cells, file_names, need_pyarrow, part_and_row, row_key
from manylabel.data.shard.blocks import Blocks
from manylabel.data.shard.locate import Shard
from manylabel.data.shard.recent import Recent
from manylabel.data.source import EncodedSource
from manylabel.error import DataError, DecodeError

OPEN_FILES = 32  # of each process
KEPT_BYTES = 128 << 20  # of row groups, of each process
LARGEST_GROUP = 512 << 20  # bytes of images in a row group; each worker process holds one at least
KEPT_NAMES = 16 << 20  # bytes of names of files, of each process


def open_parquet(path: Path, images: str | None = None) -> Any:
    """A pyarrow ParquetFile, its footer read. In the column `images` equal cells are kept in memory once: a file of
    some hundred bytes can repeat one image a million times, and its footer counts that once, too."""
    need_pyarrow("Parquet")
    import pyarrow.parquet as parquet

    with _understood(path):
        file = parquet.ParquetFile(path, pre_buffer=False)
        if images is not None:
            leaves = _leaves(file, images)
            file = parquet.ParquetFile(path, metadata=file.metadata, pre_buffer=False, read_dictionary=leaves)
        file.schema_arrow  # noqa: B018 (a footer that makes no sense shows here)
        return file


def _leaves(file: Any, column: str) -> list[str]:
    """What a column of images consists of, as far as it matters here."""
    schema = file.metadata.schema
    wanted = (column, f"{column}.bytes", f"{column}.path")
    leaves = map(schema.column, range(len(schema)))
    return [leaf.path for leaf in leaves if leaf.path in wanted and leaf.physical_type == "BYTE_ARRAY"]


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    """What pyarrow says about a footer that is damaged, as our own error."""
    pyarrow = need_pyarrow("Parquet")
    try:
        yield
    except OSError as error:
        if error.strerror:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
        raise DataError(_damaged(path)) from error
    except (pyarrow.ArrowException, ValueError, ArithmeticError, LookupError, TypeError, MemoryError) as error:
        raise DataError(_damaged(path)) from error


def _damaged(path: Path) -> str:
    return f"{path} is cut off or no Parquet file; fetch or write it again"


@dataclass(frozen=True, eq=False)
class ParquetShard:
    """One file: its row groups, and what it was when it was opened."""

    path: Path
    length: int
    changed: int  # ns
    inode: int
    stamp: str
    ends: np.ndarray  # [groups] int64, rows up to the end of each
    largest: int  # bytes of images in a row group

    @classmethod
    def of(cls, path: Path, column: str, file: Any) -> ParquetShard:
        with _understood(path):
            facts, metadata = path.stat(), file.metadata
            groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
            sizes = [sum(_bytes_in(group, column)) for group in groups]
            rows = [group.num_rows for group in groups]
            ends = np.cumsum(rows, dtype=np.int64)
        if min(rows, default=0) < 0 or min(sizes, default=0) < 0 or (np.diff(ends, prepend=0) < 0).any():
            raise DataError(_damaged(path))
        stamp = file_stamp(path, facts)
        shard = cls(path, facts.st_size, facts.st_mtime_ns, facts.st_ino, stamp, ends, max(sizes, default=0))
        if shard.largest > LARGEST_GROUP:
            raise DataError(
                f"{path}, row group {sizes.index(shard.largest)}: {shard.largest / 1e9:.1f} GB of images in one row group "
                f"must be read at once (limit {LARGEST_GROUP / 1e9:.1f} GB); write the file again with smaller ones, "
                "e.g. pyarrow.parquet.write_table(table, path, row_group_size=256)"
            )
        return shard

    @property
    def rows(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0


def _bytes_in(group: Any, column: str) -> Iterator[int]:
    for i in range(group.num_columns):
        leaf = group.column(i)
        if leaf.path_in_schema == column or leaf.path_in_schema.startswith(f"{column}."):
            yield int(leaf.total_uncompressed_size)


@dataclass(frozen=True, eq=False)
class ParquetSource(EncodedSource):
    """A key is the name of a shard and a row in it, counted from 0: 'train-00000-of-00002/0000017'."""

    root: Path
    column: str
    shards: dict[str, ParquetShard]
    cells: Cells
    named: bool = True  # cells have a field for the name of a file
    _files: Recent[Path, Any] = field(default_factory=lambda: Recent(OPEN_FILES), repr=False)
    _groups: Recent[tuple[Path, int], Any] = field(default_factory=lambda: Recent(KEPT_BYTES), repr=False)
    _names: Recent[tuple[Path, int], Any] = field(default_factory=lambda: Recent(KEPT_NAMES), repr=False)

    @classmethod
    def of(cls, shards: Sequence[Shard], column: str, root: Path, images: str | None = None) -> ParquetSource:
        folders = (root,) if images is None else (Path(images), root)
        opened, named = {}, False
        for shard in shards:
            file = open_parquet(shard.path)
            opened[shard.name] = ParquetShard.of(shard.path, column, file)
            named |= f"{column}.path" in _leaves(file, column)
        return cls(root, column, opened, Cells(folders), named)

    def __len__(self) -> int:
        return sum(shard.rows for shard in self.shards.values())

    def raw(self, key: str) -> bytes:
        shard, group, at = self._find(key)
        cells = self._groups.get(
            (shard.path, group), lambda: self._read(shard, group, self.column), lambda column: column.nbytes
        )
        if at >= len(cells):
            raise DecodeError(f"{shard.path.name}, row group {group} has fewer rows than it should")
        return self.cells.image(cells[at].as_py())

    def _find(self, key: str) -> tuple[ParquetShard, int, int]:
        """(shard, row group, row in it)"""
        name, row = part_and_row(key)
        shard = self.shards.get(name)
        if shard is None or row >= shard.rows:
            raise DecodeError(f"there is no {key!r} in the shards")
        group = int(np.searchsorted(shard.ends, row, side="right"))
        return shard, group, row - (int(shard.ends[group - 1]) if group else 0)

    def _read(self, shard: ParquetShard, group: int, column: str) -> Any:
        """A column of a row group. One thread: worker processes are there to use the others."""
        pyarrow = need_pyarrow("Parquet")
        try:
            file = self._files.get(shard.path, lambda: self._open(shard))
            return file.read_row_group(group, columns=[column], use_threads=False).column(0)
        except (pyarrow.ArrowException, OSError, ValueError, ArithmeticError, LookupError, DataError) as error:
            text = " ".join(str(error).split())[:200]
            raise DecodeError(f"{shard.path.name}, row group {group} is damaged ({text})") from error

    def _open(self, shard: ParquetShard) -> Any:
        facts = shard.path.stat()
        if (facts.st_size, facts.st_mtime_ns, facts.st_ino) != (shard.length, shard.changed, shard.inode):
            raise DecodeError(f"{shard.path} was changed while it was in use; start again")
        return open_parquet(shard.path, self.column)

    def stamp(self, key: str) -> str:
        shard, group, at = self._find(key)
        names = self._names.get((shard.path, group), lambda: self._file_names(shard, group), _weight)
        beside = "" if names is None or at >= len(names) else self.cells.stamp(names[at].as_py())
        row = part_and_row(key)[1]
        return f"{shard.stamp}|{self.column}|{row}|{beside}"

    def _file_names(self, shard: ParquetShard, group: int) -> Any:
        """What the cells call their files; the images are not read for that."""
        if not self.named:
            return None
        try:
            return file_names(self._read(shard, group, f"{self.column}.path"))
        except DecodeError:  # reading the images will tell
            return None

    def blocks(self, keys: np.ndarray) -> Blocks | None:
        """A block is a row group; as many are mixed as a process keeps."""
        places = [part_and_row(str(key)) for key in keys]
        number = {name: i for i, name in enumerate(self.shards)}
        shard = np.array([number[name] for name, _ in places], np.int64)
        row = np.array([at for _, at in places], np.int64)
        ids = np.empty(len(places), np.int64)
        first = 0
        for i, facts in enumerate(self.shards.values()):
            mine = shard == i
            ids[mine] = first + np.searchsorted(facts.ends, row[mine], side="right")
            first += len(facts.ends)
        largest = max((facts.largest for facts in self.shards.values()), default=0)
        return Blocks(ids, max(1, KEPT_BYTES // max(largest, 1)))

    def images(self) -> Iterator[tuple[str, str]]:
        """(name for people, key) of every row."""
        for name, shard in self.shards.items():
            for row in range(shard.rows):
                yield f"{shard.path}:{row}", row_key(name, row)


def _weight(names: Any) -> int:
    return 1 if names is None else int(names.nbytes)
