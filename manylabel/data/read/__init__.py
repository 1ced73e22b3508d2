"""From what people have to the one table. `read_table` is the only door."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from manylabel.config import DataConfig
from manylabel.data.read.csv import read_csv
from manylabel.data.scenes import LABELS, label_matrix
from manylabel.data.source import SceneSource
from manylabel.data.table import Table
from manylabel.error import DataError
from manylabel.labels import LabelSpace
from manylabel.suggest import closest

READERS = {"csv": read_csv}
SUFFIXES = {".csv": "csv", ".tsv": "csv"}
USUAL_NAMES = ("labels.csv", "labels.tsv")


def read_table(config: DataConfig) -> Table:
    """The table that config.path names: 'scenes', a label file, or a folder with one label file in it."""
    if config.path == "scenes":
        return read_scenes(config)
    if not config.path:
        raise DataError("no data given; name a label file, a folder that holds one, or 'scenes' for the embedded data")
    path = Path(config.path)
    if not path.exists():
        near = [str(p) for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"{path} does not exist{closest(str(path), near) if near else ''}")
    if path.is_dir():
        path = _label_file(path)
    kind = config.format if config.format != "auto" else SUFFIXES.get(path.suffix.lower(), "")
    if kind not in READERS:
        what = f"format {kind!r}" if kind else f"what kind of label file {path} is"
        raise DataError(f"we do not know {what}{closest(kind or path.suffix.lower(), READERS)} (data.format)")
    return READERS[kind](path, config)


def _label_file(folder: Path) -> Path:
    for name in USUAL_NAMES:
        if (folder / name).is_file():
            return folder / name
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(f"{folder} holds several label files ({', '.join(p.name for p in found)}); name the one to use")
    raise DataError(
        f"{folder} is a folder without a label file; put a labels.csv in it (file_name,labels with one row per image)"
    )


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
