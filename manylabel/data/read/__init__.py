"""From what people have to the one table. `read_table` is the only door; `open_data` the same for those who write it."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.config import DataConfig, parse
from manylabel.data.builder import TableBuilder
from manylabel.data.part import chosen_images
from manylabel.data.read.label_file import read_label_file
from manylabel.data.read.split_file import is_split_file, with_split_file
from manylabel.data.read.text_file import decode_json
from manylabel.data.record import Format
from manylabel.data.scenes import LABELS, label_matrix
from manylabel.data.shard.locate import is_pattern
from manylabel.data.source import SceneSource
from manylabel.data.table import Table
from manylabel.data.walk import NOT_OURS
from manylabel.error import DataError
from manylabel.hierarchy import Hierarchy
from manylabel.labels import LabelSpace
from manylabel.storage.lock import is_at_work
from manylabel.suggest import closest

# files of this folder; the first that recognises a path reads it
_MODULES = "hf_datasets webdataset coco voc open_images nus_wide nus_wide_zsl fiftyone label_studio yolo imagefolder"
_MODULES += " json_rows parquet jsonl csv folders"
_FOUND: list[Format] = [import_module(f"manylabel.data.read.{name}").FORMAT for name in _MODULES.split()]
FORMATS = {kind.name: kind for kind in _FOUND}
USUAL_NAMES = ("labels.csv", "labels.tsv", "labels.jsonl", "labels.json", "labels.parquet")
UNREADABLE = dict.fromkeys((".xlsx", ".xls", ".ods"), "save the sheet as CSV")
UNREADABLE |= dict.fromkeys((".zip", ".gz", ".tgz", ".rar", ".7z"), "unpack it first")
LABEL_FILES = {".csv", ".tsv", ".json", ".jsonl", ".parquet"}


def load_data(path: str | Path, **options: Any) -> Table:
    """The table at this path; options are those of the data section: load_data("photos/", missing="drop")."""
    return read_table(parse(DataConfig, {"path": str(path), **options}, "data"))


def read_table(config: DataConfig) -> Table:
    """The table that config.path names: 'scenes', a label file, or a folder in a format we know."""
    table = read_scenes(config) if config.path == "scenes" else open_data(config).table()
    return chosen_images(with_split_file(table, config), config)


def open_data(config: DataConfig) -> TableBuilder:
    """The columns of what config.path names: its table, or its records, for writers that need no matrix."""
    try:
        path, kind, reason = find_format(config)
        reading = kind.open(path, config)
        reading.notes.insert(0, f"read as {kind.title} ({reason}); another format: --format NAME")
        return TableBuilder(reading, config, _label_file(config))
    except OSError as error:  # a name in a label file that no file system takes, or a disk that went away
        raise DataError(f"cannot read {error.filename or config.path}: {error.strerror or error}") from error


def find_format(config: DataConfig) -> tuple[Path, Format, str]:
    """(path, format, what gave it away) of the data at config.path."""
    path = _existing(config.path)
    if config.format != "auto":
        return _as_asked(path, config.format)
    for name in ("labels.csv", "labels.tsv"):  # our own name: it is meant, whatever lies beside it
        if (path / name).is_file():
            path = path / name
    if found := _sniffed(path):
        return found
    if path.is_dir():
        if deeper := _only_folder(path):  # an archive was unpacked into a folder of its own
            return find_format(replace(config, path=str(deeper)))
        path = _only_label_file(path)
        if found := _sniffed(path):
            return found
    if path.suffix.lower() == ".json":
        decode_json(path)  # says so where it is damaged
    hint = UNREADABLE.get(path.suffix.lower(), f"name it with --format ({', '.join(FORMATS)})")
    raise DataError(f"we do not know what kind of label file {path} is; {hint}")


def _existing(given: str) -> Path:
    if not given:
        raise DataError("no data given; name a label file, a folder of data, or 'scenes' for the embedded data")
    path = Path(given)
    if not path.exists() and not is_pattern(path):
        near = [str(p) for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"{path} does not exist{closest(str(path), near) if near else ''}")
    return path


def _as_asked(path: Path, name: str) -> tuple[Path, Format, str]:
    """The format of this name; in a folder that is not in it, the one file that is."""
    if name not in FORMATS:
        raise DataError(f"we do not know the format {name!r}{closest(name, FORMATS)} (data.format)")
    kind = FORMATS[name]
    if path.is_dir() and not kind.sniff(path):
        files = [file for file in _candidates(path) if kind.sniff(file)]
        if len(files) == 1 or (files and files[0].name in USUAL_NAMES):
            path = files[0]
    return path, kind, "as asked"


def _sniffed(path: Path) -> tuple[Path, Format, str] | None:
    for kind in FORMATS.values():
        if reason := kind.sniff(path):
            return path, kind, reason
    return None


def _only_folder(path: Path) -> Path | None:
    """The one thing in this folder, if it is a folder."""
    entries = [entry for entry in path.iterdir() if entry.name[0] != "." and entry.name not in NOT_OURS]
    entries = [entry for entry in entries if not is_at_work(entry)]  # the folder of the run that asks
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else None


def _candidates(folder: Path) -> list[Path]:
    usual = [folder / name for name in USUAL_NAMES if (folder / name).is_file()]
    seen = [path for path in folder.iterdir() if path.suffix.lower() in LABEL_FILES and path.name[0] != "."]
    return usual + [p for p in sorted(seen) if p.is_file() and p not in usual and not is_split_file(p)]


def _only_label_file(folder: Path) -> Path:
    found = _candidates(folder)
    if found and (len(found) == 1 or found[0].name in USUAL_NAMES):
        return found[0]
    if found:
        raise DataError(
            f"{folder} holds several label files ({', '.join(p.name for p in found)}) that do not belong together; "
            f"name the one to use, for example {found[0]}, or --format folders if the folders are the labels"
        )
    for file in folder.iterdir():
        if file.suffix.lower() in UNREADABLE:
            raise DataError(f"we do not read {file}; {UNREADABLE[file.suffix.lower()]}")
    raise DataError(
        f"{folder} is a folder without a label file; put a labels.csv in it (file_name,labels with one row per image), "
        "or put the images into one folder per label, two labels at least"
    )


def _label_file(config: DataConfig) -> Hierarchy | None:
    return None if config.labels is None else read_label_file(Path(config.labels))


def read_scenes(config: DataConfig) -> Table:
    """The embedded data: training scenes first, then validation scenes; noise and gaps only in the former."""
    s = config.scenes
    if s.train < 1 or s.val < 1:
        raise DataError("data.scenes.train and data.scenes.val must be at least 1")
    train = label_matrix(s.seed, range(s.train), noise=s.noise, unknown=s.unknown)
    val = label_matrix(s.seed, range(s.train, s.train + s.val))
    return Table(
        name="scenes",
        source=SceneSource(s.seed, s.size),
        keys=np.array([SceneSource.key(i) for i in range(s.train + s.val)]),
        labels=LabelSpace(LABELS),
        matrix=np.concatenate([train, val]),
        split=np.array(["train"] * s.train + ["val"] * s.val),
        notes=("drawn on the fly",),
    )
