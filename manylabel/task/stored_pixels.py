"""Objects in the pixels of the image as it is stored: what is there, and what was found, as the COCO protocol takes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from manylabel.data.object_transform import Placement
from manylabel.data.stored_objects import StoredObjects
from manylabel.detect import Detections
from manylabel.metric.detection import ImageFound, ImageTruth, run_lengths

MASK_PIXELS = 2**24  # of an image's masks that are laid into it at a time


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
