"""Images on their way to a model: each is read once, and prepared for every task, here or in worker processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from manylabel.data.dataset import quiet_worker
from manylabel.data.given_image import GivenImage, ImageLike, as_several, read_image
from manylabel.data.shard.packed import PackedImage
from manylabel.error import DecodeError

Prepare = Callable[[Image.Image], Any]  # an upright picture → what a task's model takes of it
AHEAD = 8  # images that a worker decodes ahead of the model
WORTH_A_WORKER = 32  # images; to start one takes as long as to decode some


@dataclass(frozen=True)
class Prepared:
    """An image as each task takes it, or in `error` why there is none."""

    name: str
    inputs: Mapping[str, Any]
    error: str | None = None


class Decoding(Dataset[Prepared]):
    """(number, image) → Prepared. `at_least`: pixels that an image is decoded with at least; None = all that it has."""

    def __init__(self, prepare: Mapping[str, Prepare], at_least: int | None) -> None:
        self.prepare, self.at_least = prepare, at_least

    def __getitem__(self, item: tuple[int, Any]) -> Prepared:
        number, given = item
        found = given if isinstance(given, GivenImage) else read_image(given, number, self.at_least)
        if found.picture is None:
            return Prepared(found.name, {}, str(found.error))
        return Prepared(found.name, {task: prepare(found.picture) for task, prepare in self.prepare.items()})

    def stream(self, images: ImageLike | Iterable[ImageLike], workers: int = 0) -> Iterator[Prepared]:
        """In order, any number of images in bounded memory. One image alone that cannot be read raises a DecodeError."""
        several, alone = as_several(images)
        if alone or not workers:
            found: Iterable[Prepared] = map(self.__getitem__, enumerate(several))
        else:
            found = DataLoader(
                self,
                sampler=self._for_workers(several),  # type: ignore[arg-type]  # any iterable: its items are what is read
                batch_size=None,
                num_workers=workers,
                prefetch_factor=AHEAD,
                worker_init_fn=quiet_worker,
                generator=torch.Generator(),  # or it would draw from everybody's
            )
        for one in found:
            if alone and one.error is not None:
                raise DecodeError(f"{one.name}: {one.error}")
            yield one

    def _for_workers(self, images: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        """What lies in files is read there; what lies in this process's memory, or is open in it, is read here."""
        for number, image in enumerate(images):
            in_a_file = isinstance(image, (str, os.PathLike, PackedImage))
            yield number, image if in_a_file else replace(read_image(image, number, self.at_least), given=None)


def worth_workers(images: int, workers: int) -> int:
    """How many of these workers so many images keep busy."""
    return min(workers, images // WORTH_A_WORKER)
