"""The image files of a data set that is written: left where they are, linked, or copied."""

from __future__ import annotations

import filecmp
import io
import os
import shutil
from pathlib import Path, PurePosixPath, PureWindowsPath

from manylabel.atomic import replacing, write_bytes
from manylabel.data.decode import describe
from manylabel.data.read.places import escapes
from manylabel.data.source import FileSource, ImageSource
from manylabel.data.walk import is_image_name
from manylabel.data.write.target import Images
from manylabel.error import DataError


def _inside(key: str) -> str:
    """A name that stays in its folder, whatever the key was: '../b/c.jpg' and '/b/c.jpg' become 'b/c.jpg'."""
    if not escapes(key):
        return key
    parts = PureWindowsPath(key).parts if "\\" in key else PurePosixPath(key).parts
    return "/".join(part for part in parts if part not in ("/", "..") and not part.endswith((":\\", ":", "\\")))


class ImagePlacer:
    """Puts images into `folder` and says under which name, relative to that folder, each is found."""

    def __init__(self, source: ImageSource, folder: Path, how: Images) -> None:
        self.source = source
        self.folder = folder
        self.how = how
        self.names: dict[str, str] = {}  # where each image went

    def place(self, key: str) -> str:
        """The name of this image under `folder`; with 'leave', its name in the source."""
        if self.how == "leave":
            return key
        name = _inside(key) if is_image_name(key) else _inside(key) + self._suffix(key)
        if self.names.setdefault(name, key) != key:
            raise DataError(
                f"{key!r} and {self.names[name]!r} would both be written to {self.folder / name}; rename one"
            )
        target = self.folder / name
        if not self._is_there(key, target):
            target.parent.mkdir(parents=True, exist_ok=True)
            self._put(key, target)
        return name

    def _suffix(self, key: str) -> str:
        """For images that are not files and have no file name: what their bytes are, or what they are saved as."""
        raw = getattr(self.source, "raw", None)
        return ".png" if raw is None else f".{describe(raw(key)).format.lower().replace('jpeg2000', 'jp2')}"

    def _is_there(self, key: str, target: Path) -> bool:
        """Placed before, by a conversion that was interrupted; another file is never written over."""
        if not os.path.lexists(target):
            return False
        if isinstance(self.source, FileSource):
            same = target.is_file() and filecmp.cmp(self.source.path(key), target, shallow=False)
        else:
            same = target.is_file() and self._encoded(key) == target.read_bytes()
        if not same:
            raise DataError(f"{target} is there already and is another image than {key!r}; choose another folder")
        return True

    def _encoded(self, key: str) -> bytes:
        raw = getattr(self.source, "raw", None)
        if raw is not None:
            return bytes(raw(key))
        data = io.BytesIO()
        self.source.read(key).save(data, format="PNG")
        return data.getvalue()

    def _put(self, key: str, target: Path) -> None:
        if isinstance(self.source, FileSource):
            original = self.source.path(key)
            if self.how == "link":
                try:
                    os.link(os.path.realpath(original), target)  # not the link, where it is one
                    return
                except OSError:  # another disk, or a file system without links: copy
                    pass
            with replacing(target) as temporary:
                shutil.copyfile(original, temporary)
            return
        write_bytes(target, self._encoded(key))

    def note(self) -> list[str]:
        """What a person must know to read the result again."""
        if self.how != "leave":
            return []
        if not isinstance(self.source, FileSource):
            raise DataError("these images are not files of their own; take them along with --images copy")
        return [f"the images stay in {self.source.root}; read the result with --set data.images={self.source.root}"]
