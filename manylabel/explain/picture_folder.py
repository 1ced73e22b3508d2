"""Explanations as files: a picture for each image and label, and one sheet of all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from PIL import Image

from manylabel.explain.explanation import Explanation
from manylabel.explain.overlay import captioned
from manylabel.explain.sheet import MOST_ROWS, contact_sheet
from manylabel.storage.output import check_outputs
from manylabel.storage.png import save_png

SHEET = "sheet.png"
PICTURES = "[0-9][0-9][0-9][0-9]-*.png"
LONGEST = 40  # characters of a name inside a file name


class PictureFolder:
    """Writes pictures into a folder as explanations come, and the sheet at the end."""

    def __init__(self, folder: Path, heads: bool = False, overwrite: bool = False) -> None:
        check_outputs(folder, (SHEET, PICTURES), overwrite)
        self.folder, self.heads = folder, heads
        self._rows: list[list[Explanation]] = []
        self._images = self._pictured = 0

    def add(self, row: Sequence[Explanation]) -> list[list[Path]]:
        """Of one image: the files of each explanation, that of all attention heads together first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._images += 1
        stages = len({found.stage for found in row})
        if len(self._rows) < MOST_ROWS:  # at several stages a label has a row of its own
            self._rows += [list(row[i : i + stages]) for i in range(0, len(row), stages)] if stages > 1 else [list(row)]
            self._pictured += 1
        files: list[list[Path]] = []
        taken: set[str] = set()
        for found in row:
            if found.error is not None:
                files.append([])
                continue
            stem = f"{self._images:04d}-{safe(PurePath(found.image).stem)}-{safe(found.label)}"
            stem += f"-{safe(found.stage)}" if stages > 1 else ""
            while stem.casefold() in taken:  # C++ and C# are the same to a file's name
                stem += "_"
            taken.add(stem.casefold())
            count = len(next(iter(found.head_grids.values()))) if self.heads and found.head_grids else 0
            own = [self._save(captioned(found), f"{stem}.png")]
            own += [self._save(captioned(found, head=i), f"{stem}-head{i + 1}.png") for i in range(count)]
            files.append(own)
        return files

    def close(self) -> Path:
        """Writes the sheet."""
        return self._save(contact_sheet(self._rows, self._images - self._pictured), SHEET)

    def _save(self, picture: Image.Image, name: str) -> Path:
        return save_png(picture, self.folder / name)


def safe(name: str) -> str:
    """A part of a file name that any system takes."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._")[:LONGEST] or "x"
