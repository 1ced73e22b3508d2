"""Explanations as files: a picture for each image and label, and one sheet of all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from manylabel.error import ManylabelError
from manylabel.explain.explanation import Explanation
from manylabel.explain.overlay import captioned
from manylabel.explain.sheet import MOST_ROWS, contact_sheet

SHEET = "sheet.png"
SIGN = "manylabel explain"  # stands in our pictures, so that we only ever replace our own
LONGEST = 40  # characters of a name inside a file name


class PictureFolder:
    """Writes pictures into a folder as explanations come, and the sheet at the end."""

    def __init__(self, folder: Path, heads: bool = False) -> None:
        if folder.exists() and not folder.is_dir():
            raise ManylabelError(f"{folder} is not a folder; choose another --out")
        check_own(folder / SHEET)
        self.folder, self.heads = folder, heads
        self._rows: list[list[Explanation]] = []
        self._images = 0

    def add(self, row: Sequence[Explanation]) -> list[list[Path]]:
        """Of one image: the files of each explanation, that of all attention heads together first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._images += 1
        if len(self._rows) < MOST_ROWS:
            self._rows.append(list(row))
        files: list[list[Path]] = []
        taken: set[str] = set()
        for found in row:
            if found.error is not None:
                files.append([])
                continue
            stem = f"{self._images:04d}-{safe(PurePath(found.image).stem)}-{safe(found.label)}"
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
        return self._save(contact_sheet(self._rows, self._images - len(self._rows)), SHEET)

    def _save(self, picture: Image.Image, name: str) -> Path:
        path = self.folder / name
        check_own(path)
        facts = PngInfo()
        facts.add_text("Software", SIGN)
        picture.save(path, "PNG", pnginfo=facts)
        return path


def safe(name: str) -> str:
    """A part of a file name that any system takes."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._")[:LONGEST] or "x"


def check_own(path: Path) -> None:
    """Stop where a picture would replace one that is not ours."""
    if not path.exists():
        return
    try:
        with Image.open(path, formats=["PNG"]) as picture:
            ours = picture.info.get("Software") == SIGN
    except OSError:
        ours = False
    if not ours:
        raise ManylabelError(f"{path} is there already and was not written by this command; choose another --out")
