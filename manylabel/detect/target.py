"""The objects of one image: those that are there, and those that a detector finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from manylabel.detect.paste import paste
from manylabel.error import DataError


@dataclass(frozen=True, eq=False)
class DetectionTarget:
    """What is there, in pixels of the image it belongs to; an image may have no objects.

    An ignored object (a crowd, or one that is hard to see) is never learned, and what lies mostly in it is no background.
    A mask without a pixel was never drawn: its object teaches the box alone.
    """

    boxes: Tensor  # [m, 4] float32: left, top, right, bottom
    labels: Tensor  # [m] int64, from 0
    masks: Tensor | None  # [m, H, W] bool; None = boxes alone
    ignore: Tensor  # [m] bool

    def __post_init__(self) -> None:
        m = len(self.boxes)
        wrong = self.boxes.shape != (m, 4) or self.labels.shape != (m,) or self.ignore.shape != (m,)
        if wrong or (self.masks is not None and (self.masks.ndim != 3 or len(self.masks) != m)):
            shapes = [
                tuple(x.shape) if x is not None else None for x in (self.boxes, self.labels, self.masks, self.ignore)
            ]
            raise DataError(
                f"boxes [m, 4], labels [m], masks [m, H, W] and ignore [m] do not belong together: {shapes}"
            )

    def __len__(self) -> int:
        return len(self.boxes)

    def take(self, which: Tensor) -> DetectionTarget:
        """Some of the objects: `which` holds their numbers, or True for each."""
        masks = None if self.masks is None else self.masks[which]
        return DetectionTarget(self.boxes[which], self.labels[which], masks, self.ignore[which])

    def to(self, device: torch.device | str) -> DetectionTarget:
        masks = None if self.masks is None else self.masks.to(device, non_blocking=True)
        boxes, labels, ignore = (x.to(device, non_blocking=True) for x in (self.boxes, self.labels, self.ignore))
        return DetectionTarget(boxes, labels, masks, ignore)

    def pin_memory(self) -> DetectionTarget:
        masks = None if self.masks is None else self.masks.pin_memory()
        return DetectionTarget(self.boxes.pin_memory(), self.labels.pin_memory(), masks, self.ignore.pin_memory())


@dataclass(frozen=True, eq=False)
class Detections:
    """What was found, best first; boxes in pixels of the model's input."""

    boxes: Tensor  # [n, 4] float32: left, top, right, bottom
    labels: Tensor  # [n] int64, from 0
    scores: Tensor  # [n] float32
    masks: Tensor | None = None  # [n, 28, 28] float32: probability over the box

    def __len__(self) -> int:
        return len(self.boxes)

    def part(self, which: slice | Tensor) -> Detections:
        """Some of them, by their numbers or one bool for each."""
        masks = None if self.masks is None else self.masks[which]
        return Detections(self.boxes[which], self.labels[which], self.scores[which], masks)

    def paste(self, size: tuple[int, int], threshold: float = 0.5) -> Tensor:
        """The pixels of every object in an image of (H, W) whose pixels the boxes are in. [n, H, W] bool"""
        if self.masks is None:
            raise ValueError("these detections have no masks: the detector was built with masks=False")
        return paste(self.masks, self.boxes, size, threshold)


def check_targets(targets: Sequence[DetectionTarget], images: int, size: tuple[int, int], num_labels: int) -> None:
    """Stop with the number of the first image whose objects cannot be learned: they would make every weight NaN."""
    if len(targets) != images:
        raise ValueError(f"{len(targets)} targets for {images} images")
    for number, target in enumerate(targets):
        if target.masks is not None and target.masks.shape[1:] != size:
            found = tuple(target.masks.shape[1:])
            raise DataError(f"image {number} of the batch: masks of {found} (height, width) for an image of {size}")
    boxes, labels = torch.cat([t.boxes for t in targets]), torch.cat([t.labels for t in targets])
    has_area = boxes.isfinite().all(dim=1) & (boxes[:, 2:] > boxes[:, :2]).all(dim=1)
    known = (labels >= 0) & (labels < num_labels)
    if not bool((has_area & known).all()):
        at = int((~(has_area & known)).nonzero()[0])
        number = int(torch.tensor([len(t) for t in targets]).cumsum(0).gt(at).nonzero()[0])
        if not bool(known[at]):
            raise DataError(
                f"image {number} of the batch: label {int(labels[at])}, where there are {num_labels} from 0 on"
            )
        raise DataError(
            f"image {number} of the batch: the box {boxes[at].tolist()} has no area; leave out such objects, or mend them"
        )
