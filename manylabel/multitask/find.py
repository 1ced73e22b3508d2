"""Boxes, and masks where the data has them, as a task among others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manylabel import console
from manylabel.backbone.moe_vit import Routes
from manylabel.data.dataset import Batch, pixel_loader
from manylabel.data.object_dataset import ObjectBatch, ObjectDataset
from manylabel.data.object_transform import ObjectTransform, Placement
from manylabel.data.sampler import EpochBatches
from manylabel.data.stored_objects import StoredObjects
from manylabel.data.table import Table
from manylabel.detect import Detections
from manylabel.labels import PRESENT
from manylabel.metric.detection import DetectionAP, ImageFound, ImageTruth, coco_average_precision, run_lengths
from manylabel.multitask.model import MultiTaskModel
from manylabel.multitask.work import Advance, Judgement, TaskWork
from manylabel.stop import unless_stopped

MASK_PIXELS = 2**24  # of an image's masks that are laid into it at a time


class ObjectFeed:
    """Images with their objects, decoded in worker processes that live from epoch to epoch."""

    def __init__(self, dataset: ObjectDataset, order: EpochBatches, workers: int) -> None:
        self.order = order
        self.loader = pixel_loader(dataset, order, workers, pin=torch.cuda.is_available())

    def __len__(self) -> int:
        return len(self.order)

    def batches(self, epoch: int = 0, start: int = 0) -> Any:
        self.order.epoch, self.order.start = epoch, start
        for batch in self.loader:
            if batch.wrong is not None:
                raise batch.wrong
            yield batch


class DetectionWork(TaskWork):
    """Detection and instance segmentation: the losses of the cascade, figures by the COCO protocol."""

    def __init__(self, *given: Any, model: MultiTaskModel, seed: int, rank: int = 0, world: int = 1) -> None:
        super().__init__(*given)
        c, preprocess = self.config, model.preprocess(self.name)
        self.masks = bool(model.head(self.name).options.masks)
        low = c.augment.random_crop or 1.0
        varied = ObjectTransform(preprocess, flip=c.augment.flip, scale=(low, 2 - low))
        plain = ObjectTransform(preprocess)
        train, held_out, val = self.orders(seed, rank, world)
        self.train_feed = ObjectFeed(ObjectDataset(self.table, varied, seed, random=True), train, c.data.workers)
        self.judged = ObjectDataset(self.table, plain)
        self.held_out_feed = ObjectFeed(self.judged, held_out, self.held_out_workers)
        self.val_feed = ObjectFeed(self.judged, val, c.data.workers)

    def begin(self, model: MultiTaskModel) -> None:
        if self.masks:
            self.judged.stored.check_masks()
        model.head(self.name).expect(torch.from_numpy(self.judged.stored.per_image(self.parts.train)))

    def losses(
        self, model: MultiTaskModel, batch: Batch, device: torch.device, routes: Routes | None
    ) -> dict[str, Tensor]:
        assert isinstance(batch, ObjectBatch)
        targets = [target.to(device) for target in batch.targets]
        return model.detection_losses(batch.pixels.to(device), self.name, targets, routes)

    def judge(self, model: MultiTaskModel, device: torch.device, advance: Advance = lambda _: None) -> Judgement:
        seen: list[tuple[int, ImageFound]] = []
        for batch in unless_stopped(self.val_feed.batches(), self.stop):
            self.bad.add(batch.bad)
            if len(batch) and isinstance(batch, ObjectBatch):
                detections = model.detect(batch.pixels.to(device), self.name)
                places = [in_stored_pixels(one, p, self.masks) for one, p in zip(detections, batch.places, strict=True)]
                seen += zip(batch.rows.tolist(), places, strict=True)
            advance(len(batch) + len(batch.bad))
        seen = self.gathered(seen)
        if not seen:
            raise self.none_readable()
        found, boxed, drawn = [one for _, one in seen], [], []
        for row, _ in seen:  # one after another: the pixels of all masks at once would be gigabytes
            stored = self.judged.stored.truth(row)
            boxed.append(box_truth(stored))
            if self.masks:
                drawn.append(mask_truth(stored))
        labels = len(self.table.labels)
        boxes = coco_average_precision(boxed, found, labels, "box")
        figures = _percent(boxes, "AP")
        if self.masks:
            figures |= _percent(coco_average_precision(drawn, found, labels, "mask"), "mask AP")
        return Judgement("AP", figures["AP"], figures, boxes.best_score)


def with_objects_told(table: Table) -> Table:
    """Without images that have a label and no box of it: nobody boxed them, so they are no background either."""
    if table.objects is None or not len(
        table.objects
    ):  # of scenes, which are drawn with theirs; or an error of its own
        return table
    boxed = np.zeros(table.matrix.shape, bool)
    boxed[table.objects.row, table.objects.label] = True
    told = ~((table.matrix == PRESENT) & ~boxed).any(axis=1)
    if told.all():
        return table
    console.say(
        f"{table.name}: {np.count_nonzero(~told)} images have labels without a box and are left out of detection"
    )
    return table.subset(np.flatnonzero(told))


def box_truth(stored: StoredObjects) -> ImageTruth:
    target, (width, height) = stored.target, stored.size
    crowd, ignore = stored.crowd.numpy(), target.ignore.numpy()
    sides = target.boxes[:, 2:] - target.boxes[:, :2]
    areas = sides.prod(dim=1)
    if target.masks is not None:  # COCO calls an object small by its pixels, where they are known
        pixels = target.masks.flatten(1).sum(dim=1)
        areas = torch.where(pixels > 0, pixels.to(areas), areas)
    return ImageTruth((height, width), target.boxes.numpy(), target.labels.numpy(), None, crowd, ignore, areas.numpy())


def mask_truth(stored: StoredObjects) -> ImageTruth:
    """The same with masks; what nobody drew counts neither for nor against a model: its box is a mask to be ignored."""
    truth = box_truth(stored)
    height, width = truth.size
    masks = stored.target.masks
    pixels = np.zeros((len(truth.boxes), height, width), bool) if masks is None else masks.numpy().copy()
    drawn = pixels.any(axis=(1, 2))
    for number in np.flatnonzero(~drawn):
        left, top, right, bottom = truth.boxes[number].round().astype(int)
        pixels[number, top : max(bottom, top + 1), left : max(right, left + 1)] = True
    return replace(truth, masks=run_lengths(pixels), ignore=np.asarray(truth.ignore) | ~drawn)


def in_stored_pixels(found: Detections, place: Placement, masks: bool) -> ImageFound:
    """Detections in the pixels of the image as it is stored."""
    boxes = place.back(found.boxes.cpu())
    moved = Detections(
        boxes, found.labels.cpu(), found.scores.cpu(), None if found.masks is None else found.masks.cpu()
    )
    width, height = place.stored
    drawn = None
    if masks and moved.masks is not None:
        at_once = max(1, MASK_PIXELS // (height * width))
        parts = (moved.part(slice(first, first + at_once)) for first in range(0, len(moved), at_once))
        drawn = [runs for part in parts for runs in run_lengths(part.paste((height, width)).numpy())]
    return ImageFound(boxes.numpy(), moved.labels.numpy(), moved.scores.numpy(), drawn)


def _percent(ap: DetectionAP, name: str) -> dict[str, float | None]:
    values = {name: ap.ap, f"{name}50": ap.ap50, f"{name}75": ap.ap75}
    values |= {f"{name} small": ap.small, f"{name} medium": ap.medium, f"{name} large": ap.large}
    return {key: None if value is None else 100 * value for key, value in values.items()}
