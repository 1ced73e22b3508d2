"""Rows of a table as images with their boxes and masks. What they look like depends on seed, epoch and row alone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import torch

from manylabel.data.dataset import Batch, ImageDataset, Sample, _mix_seed
from manylabel.data.object_transform import ObjectTransform, Placement, moved
from manylabel.data.stored_objects import ObjectReader
from manylabel.data.table import Table
from manylabel.detect.target import DetectionTarget
from manylabel.error import DataError, DecodeError


@dataclass(frozen=True)
class ObjectBatch(Batch):
    """Images with what is in each, in pixels of the input, and the way back to the stored image."""

    objects: list[DetectionTarget] = field(default_factory=list)
    places: list[Placement] = field(default_factory=list)

    @property
    def targets(self) -> list[DetectionTarget]:
        if self.wrong is not None:
            raise self.wrong
        return self.objects

    def pin_memory(self) -> ObjectBatch:
        objects = [each.pin_memory() for each in self.objects]
        return replace(self, inputs=self.pixels.pin_memory(), objects=objects)


class ObjectDataset(ImageDataset):
    """Row (epoch, i) → pixels, objects and their placement; or the reason why there is no image, or what is wrong."""

    def __init__(self, table: Table, transform: ObjectTransform, seed: int = 0, random: bool = False) -> None:
        super().__init__(table, transform, transform.at_least, seed, random)
        self.placing, self.stored = transform, ObjectReader(table)

    def __getitem__(self, item: tuple[int, int]) -> Sample:
        epoch, row = item
        try:
            image, stored = self.stored.read(row, self.at_least)
        except DecodeError as error:
            return row, None, str(error), None
        except DataError as error:
            return row, error, "", None
        with torch.random.fork_rng(devices=[]) if self.random else nullcontext():
            if self.random:
                torch.manual_seed(_mix_seed(self.seed, epoch, row))
            place = self.placing.place(*stored.size)
        made = self.placing.pixels(image, place), moved(stored.target, place), place
        return row, made, "", self.known_by(row, image)

    def collate(self, samples: Sequence[Sample]) -> ObjectBatch:
        wrong = next((found for _, found, *_ in samples if isinstance(found, DataError)), None)
        samples = [sample for sample in samples if not isinstance(sample[1], DataError)]
        plain = super().collate([(row, found and found[0], *rest) for row, found, *rest in samples])
        objects, places = ([found[part] for _, found, *_ in samples if found is not None] for part in (1, 2))
        return ObjectBatch(plain.inputs, plain.rows, plain.bad, plain.fingerprints, wrong, objects, places)
