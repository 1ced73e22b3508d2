"""Label files that lie at the top of a folder, or one in each of its folders train/, valid/, test/."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from manylabel.data.table import SPLITS


@dataclass(frozen=True)
class SplitFile:
    """A label file whose image names are relative to its own folder."""

    path: Path
    folder: str = ""  # under the top: '' or 'train/'
    split: str | None = None

    @property
    def name(self) -> str:
        """For messages: 'train/metadata.csv'."""
        return self.folder + self.path.name


def split_files(top: Path, find: Callable[[Path], Path | None]) -> list[SplitFile]:
    """What `find` finds at the top, else in each folder named like a split."""
    if file := find(top):
        return [SplitFile(file)]
    inside = sorted(folder for folder in top.iterdir() if folder.name.lower() in SPLITS and folder.is_dir())
    found = [SplitFile(file, f"{folder.name}/", folder.name) for folder in inside if (file := find(folder))]
    if len(found) == 1 and SPLITS[inside[0].name.lower()] == "train":
        return [SplitFile(found[0].path, found[0].folder)]  # nothing is held out, so this is no split
    return found
