"""From any format we read to any we write: the labels of a million images take about 200 MB."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from manylabel import console
from manylabel.config import DataConfig
from manylabel.data.read import open_data, read_scenes
from manylabel.data.read.own_files import refuse_own
from manylabel.data.read.split_file import chosen_split
from manylabel.data.record import Reading, Record
from manylabel.data.walk import is_among_images
from manylabel.data.write import TARGETS
from manylabel.data.write.from_table import content_of
from manylabel.data.write.taken import Taken, is_below
from manylabel.data.write.target import Content, Images, Target
from manylabel.error import DataError
from manylabel.storage.output import check_is_folder, check_output
from manylabel.storage.receipt import is_receipt
from manylabel.suggest import closest

STEP = 100  # records between two movements of the progress bar


@dataclass(frozen=True)
class Converted:
    """What came of it."""

    images: int
    labels: int
    notes: tuple[str, ...]


def convert(
    config: DataConfig,
    out: Path,
    to: str,
    *,
    images: Images | None = None,
    split: str | None = None,
    overwrite: bool = False,
) -> Converted:
    """Write the data that config.path names to `out` in the format `to`; with `split`, only that part of it."""
    if to not in TARGETS:
        raise DataError(f"we do not write the format {to!r}{closest(to, TARGETS)} (--to)")
    target = TARGETS[to]
    _refuse_loss(config, target, out, overwrite)
    if config.path == "scenes":
        content = content_of(read_scenes(config), images or "copy")
        notes: list[str] = []
        total = config.scenes.train + config.scenes.val
    else:
        built = open_data(config)
        taken = Taken(_folders(config, built.reading), config.max_bad_share)
        content = Content(built, built.labels, built.reading.rest, built.reading.source, images or target.images, taken)
        notes, total = built.reading.notes, len(built.split)
    counted = _Counted(content.records, total, split, chosen_split(config))
    said = target.write(replace(content, records=counted), out)
    return Converted(content.taken.images, len(content.labels), (*notes, *said, *content.taken.notes()))


def _folders(config: DataConfig, reading: Reading) -> tuple[Path, ...]:
    """Where files of this data are, by what the user named: what is elsewhere is reached by links."""
    named = [config.path, str(reading.path), *([config.images] if config.images else [])]
    folders = [Path(path) if os.path.isdir(path) else Path(path).parent for path in named]
    root = getattr(reading.source, "root", None)
    if root is not None and not any(is_below(os.path.abspath(root), one.absolute()) for one in folders):
        folders.append(Path(root))  # beside the folder of the label file, as COCO has it
    return tuple(dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders))


class _Counted:
    """Records with a progress bar over each pass, and only those of one split if that is asked."""

    def __init__(
        self, records: Iterable[Record], total: int, split: str | None, given: Callable[[str], str] | None
    ) -> None:
        self.records = records
        self.total = total
        self.split = split
        self.given = given  # the split of an image by data.split_file
        self.seen = 0

    def __iter__(self) -> Iterator[Record]:
        self.seen = 0
        with console.counting("converting", self.total) as advance:
            for number, record in enumerate(self.records, 1):
                if number % STEP == 0:
                    advance(STEP)
                if self.given is not None:
                    record = replace(record, split=self.given(record.key))
                if self.split is None or record.split == self.split:
                    self.seen += 1
                    yield record
        if not self.seen:  # here, while nothing has been put in place yet
            raise DataError(f"there are no images in split {self.split!r}; nothing was converted")


def _refuse_loss(config: DataConfig, target: Target, out: Path, overwrite: bool) -> None:
    """Never write over what is there unasked, nor over what is not ours, nor over what is read."""
    if not target.is_file(out):
        _check_folder(config, out, overwrite)
    outputs = target.outputs(out)
    refuse_own(outputs, config)
    for path in outputs:
        check_output(path, overwrite)
    ours = any(path.exists() for path in outputs)  # from here on
    if config.path != "scenes" and not ours and is_among_images(out, Path(config.path)):
        raise DataError(f"{out} is a folder of images in the data; choose another place")


def _check_folder(config: DataConfig, out: Path, overwrite: bool) -> None:
    if config.path != "scenes" and os.path.realpath(out) == os.path.realpath(config.path):
        raise DataError(f"{out} is the data itself; choose another place")
    if os.path.lexists(out) and not out.is_dir():
        raise DataError(f"{out} is there already and is not a folder; choose another name")
    check_is_folder(out)
    if out.is_dir() and not overwrite and not all(is_receipt(path) for path in out.iterdir()):
        raise DataError(f"{out} is a folder with files in it; choose another, or add to it with --overwrite")
