"""Public data sets from their official sources. `fetch` is the only door; `available` lists what there is.

A download that was cut goes on where it stopped, nothing is used before it is verified, and a folder that holds the
data already is left alone. Archives brought by hand may be put into OUT/.manylabel-fetch/archives under their own
names; they are verified like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from manylabel.console import say, transferring
from manylabel.data.fetch.archives import Progress, Way, fetch_archives
from manylabel.data.fetch.catalogue import CATALOGUE, Archive, DataSet
from manylabel.data.fetch.connection import Patience, check_mirror
from manylabel.data.fetch.download import Say
from manylabel.data.fetch.openimages import fetch_open_images
from manylabel.error import DataError
from manylabel.suggest import closest

__all__ = ["Archive", "DataSet", "Patience", "available", "fetch"]


def available() -> list[DataSet]:
    """Every data set with its name, what it is, size in bytes, licence and the page to read."""
    return list(CATALOGUE.values())


def fetch(
    name: str,
    out: Path | str,
    *,
    labels: Sequence[str] = (),
    count: int = 100,
    splits: Sequence[str] | None = None,
    seed: int = 0,
    other_labels: bool = False,
    mirror: str | None = None,
    keep_archives: bool = False,
    say: Say = say,
    progress: Progress = transferring,
    patience: Patience | None = None,
    catalogue: Mapping[str, DataSet] = CATALOGUE,
) -> Path:
    """Bring the data set `name` to the folder `out`, verified and ready to read; returns the folder.

    `labels`, `count` (images per label and split), `seed` and `other_labels` (keep the rows of labels that were not
    asked for) are for openimages. `mirror` ('https://host/prefix') replaces scheme and host of every address and keeps
    its path. `progress(what, total)` gives a context whose value is called with the bytes that came.
    """
    if name not in catalogue:
        raise DataError(f"there is no data set {name!r} to fetch{closest(name, catalogue)}")
    data, out = catalogue[name], Path(out)
    check_mirror(mirror)
    for split in splits or ():
        if split not in data.splits:
            raise DataError(f"{name} has no split {split!r}{closest(split, data.splits)}")
    chosen = tuple(split for split in data.splits if split in splits) if splits else ()
    way = Way(mirror, keep_archives, patience or Patience(), say, progress)
    if data.by_label:
        return fetch_open_images(data, out, labels, count, chosen, seed, other_labels, way)
    chosen = () if len(chosen) == len(data.splits) else chosen
    if labels:
        raise DataError(f"{name} is fetched as a whole; labels are chosen for openimages only")
    return fetch_archives(data, out, chosen, way)
