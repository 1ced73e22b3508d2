"""The image files of a data set that is written: left where they are, linked, or copied."""

from __future__ import annotations

import io
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from manylabel.data.decode import TooLarge, describe
from manylabel.data.finder import escapes
from manylabel.data.source import FileSource, ImageSource
from manylabel.data.walk import is_image_name
from manylabel.data.write.taken import Taken
from manylabel.data.write.target import Images
from manylabel.error import DataError, DecodeError
from manylabel.storage.atomic import replacing, write_bytes

PERMISSIONS = 0o777
BLOCK = 1 << 20


def _inside(key: str) -> str:
    """A name that stays in its folder, whatever the key was: '../b/c.jpg' and '/b/c.jpg' become 'b/c.jpg'."""
    if not escapes(key):
        return key
    parts = PureWindowsPath(key).parts if "\\" in key else PurePosixPath(key).parts
    return "/".join(part for part in parts if part not in ("/", "..") and not part.endswith((":\\", ":", "\\")))


class ImagePlacer:
    """Puts images into `folder` and says under which name, relative to that folder, each is found."""

    def __init__(self, source: ImageSource, folder: Path, how: Images, taken: Taken | None = None) -> None:
        self.source = source
        self.folder = folder
        self.how = how
        self.taken = Taken() if taken is None else taken
        self.names: dict[str, str] = {}  # where each image went

    def place(self, key: str) -> str:
        """The name of this image under `folder`; with 'leave', its name in the source. DecodeError: it is no image."""
        if self.how == "leave":
            return key
        if isinstance(self.source, FileSource):
            with _opened_image(self.source.path(key)) as original:
                name, target = self._name(key, original)
                if not os.path.lexists(target):
                    self._put(original, self.source.path(key), target)
                elif not _same(original, target):
                    raise _another(key, target)
        else:
            data = self._encoded(key)
            name, target = self._name(key, io.BytesIO(data))
            if not os.path.lexists(target):
                write_bytes(target, data)
            elif not target.is_file() or target.read_bytes() != data:
                raise _another(key, target)
        if (path := getattr(self.source, "path", None)) is not None:
            self.taken.from_file(key, path(key))
        return name

    def _name(self, key: str, image: BinaryIO) -> tuple[str, Path]:
        name = _inside(key)
        if not is_image_name(key):  # what its bytes are
            name += f".{describe(image).format.lower().replace('jpeg2000', 'jp2')}"
        if self.names.setdefault(name, key) != key:
            raise DataError(
                f"{key!r} and {self.names[name]!r} would both be written to {self.folder / name}; rename one"
            )
        return name, self.folder / name

    def _encoded(self, key: str) -> bytes:
        """The image as it is stored, checked to be one; one that is stored nowhere is saved as PNG."""
        raw = getattr(self.source, "raw", None)
        if raw is not None:
            data = bytes(raw(key))
            _refuse_other(io.BytesIO(data))
            return data
        drawn = io.BytesIO()
        self.source.read(key).save(drawn, format="PNG")
        return drawn.getvalue()

    def _put(self, original: BinaryIO, path: Path, target: Path) -> None:
        facts = os.fstat(original.fileno())
        target.parent.mkdir(parents=True, exist_ok=True)
        if self.how == "link" and _linked(path, target, facts):
            return
        original.seek(0)
        with replacing(target, stat.S_IMODE(facts.st_mode) & PERMISSIONS) as temporary, open(temporary, "wb") as file:
            shutil.copyfileobj(original, file, BLOCK)

    def note(self) -> list[str]:
        """What a person must know to read the result again."""
        if self.how != "leave":
            return []
        if not isinstance(self.source, FileSource):
            raise DataError("these images are not files of their own; take them along with --images copy")
        return [f"the images stay in {self.source.root}; read the result with --set data.images={self.source.root}"]


@contextmanager
def _opened_image(path: Path) -> Iterator[BinaryIO]:
    """The file behind a name, opened once: what is looked at is what is copied, though the name may be given another
    file meanwhile."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a pipe would wait for ever
    except OSError as error:
        raise DecodeError(f"cannot be opened: {(error.strerror or str(error)).lower()}") from error
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise DecodeError("not a regular file")
        _refuse_other(file)
        yield file


def _refuse_other(file: BinaryIO) -> None:
    """Whatever is no image stays where it is, also behind a link that is called like one."""
    with suppress(TooLarge):  # an image, though not for us
        describe(file)


def _linked(path: Path, target: Path, facts: os.stat_result) -> bool:
    """Whether `target` became a second name of the file that was looked at."""
    try:
        os.link(os.path.realpath(path), target)  # not the link, where it is one
    except OSError:  # another disk, or a file system without links: copy
        return False
    if os.path.samestat(os.lstat(target), facts):
        return True
    os.unlink(target)  # the name was given another file meanwhile
    return False


def _same(original: BinaryIO, target: Path) -> bool:
    """Whether it was placed before, by a conversion that was interrupted; another file is never written over."""
    if not target.is_file():
        return False
    original.seek(0)
    with open(target, "rb") as other:
        if os.fstat(other.fileno()).st_size != os.fstat(original.fileno()).st_size:
            return False
        while block := original.read(BLOCK):
            if other.read(BLOCK) != block:
                return False
    return True


def _another(key: str, target: Path) -> DataError:
    return DataError(f"{target} is there already and is another image than {key!r}; choose another folder")
