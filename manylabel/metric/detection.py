"""Average precision of detections by the COCO protocol, from pycocotools: no files, no printing.

AP is the mean over IoU thresholds 0.50, 0.55, …, 0.95 of the precision interpolated at 101 recalls; at most 100
detections of an image and label count. Small, medium and large are objects below 32², below 96² and above, in pixels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict, cast

import numpy as np
from pycocotools import mask as coco_mask
from pycocotools.cocoeval import COCOeval

Kind = Literal["box", "mask"]
MOST = 100  # detections of an image and label


class RunLengths(TypedDict):
    """A mask as COCO compresses it."""

    size: list[int]  # height, width
    counts: bytes


class Thing(TypedDict):
    """An object, or a detection, as COCOeval takes it; it notes there more of its own."""

    id: int
    bbox: np.ndarray  # [4]: left, top, width, height
    area: float
    segmentation: NotRequired[RunLengths]
    iscrowd: NotRequired[int]
    ignore: NotRequired[int]
    score: NotRequired[float]


Masks = Sequence[RunLengths] | np.ndarray  # or pixels [m, H, W]
Columns = dict[str, np.ndarray | Sequence[RunLengths]]  # each key of `Thing` for all objects of an image
Things = dict[tuple[int, int], list[Thing]]  # by image and label


@dataclass(frozen=True, eq=False)
class ImageTruth:
    """What is in one image. A detection of a crowd or of an ignored object counts neither for nor against a model;
    a crowd may be found in many parts."""

    size: tuple[int, int]  # height, width
    boxes: np.ndarray  # [m, 4]: left, top, right, bottom
    labels: np.ndarray  # [m]
    masks: Masks | None = None
    crowd: np.ndarray | None = None  # [m] bool
    ignore: np.ndarray | None = None  # [m] bool: hard to see, for example
    areas: np.ndarray | None = None  # [m]: what makes an object small or large; none = of its mask, else of its box


@dataclass(frozen=True, eq=False)
class ImageFound:
    """What a model found in one image."""

    boxes: np.ndarray  # [n, 4]: left, top, right, bottom
    labels: np.ndarray  # [n]
    scores: np.ndarray  # [n]
    masks: Masks | None = None


@dataclass(frozen=True, eq=False)
class DetectionAP:
    """Figures between 0 and 1; None where no object counts."""

    kind: Kind
    ap: float | None
    ap50: float | None
    ap75: float | None
    small: float | None
    medium: float | None
    large: float | None
    per_label: np.ndarray  # [L]: AP of every label, NaN where it has no object that counts
    images: int
    objects: int  # that count
    found: int
    best_score: float | None = (
        None  # lowest score to report for the highest F1 at an overlap of 0.5; None = nothing is right
    )


def coco_average_precision(
    truth: Sequence[ImageTruth], found: Sequence[ImageFound], num_labels: int, kind: Kind = "box"
) -> DetectionAP:
    """AP of what was found in images (in the order of `truth`), by boxes or by masks."""
    if kind not in ("box", "mask"):
        raise ValueError(f"kind is 'box' or 'mask', not {kind!r}")
    if len(truth) != len(found):
        raise ValueError(f"the truth of {len(truth)} images, but detections in {len(found)}")
    protocol = _Protocol(kind, len(truth), num_labels)
    for image, (there, guess) in enumerate(zip(truth, found, strict=True)):
        protocol.add(image, there, guess)
    precision = protocol.precision()  # [T, R, L, A]
    overlap, all_sizes = protocol.params.iouThrs, precision[..., 0]
    small, medium, large = (_mean(precision[..., size]) for size in (1, 2, 3))
    return DetectionAP(
        kind=kind,
        ap=_mean(all_sizes),
        ap50=_mean(all_sizes[np.isclose(overlap, 0.5)]),
        ap75=_mean(all_sizes[np.isclose(overlap, 0.75)]),
        small=small,
        medium=medium,
        large=large,
        per_label=np.array([_mean(all_sizes[:, :, label]) for label in range(num_labels)], np.float64),
        images=len(truth),
        objects=protocol.objects,
        found=protocol.found,
        best_score=protocol.best_score(),
    )


def run_lengths(masks: np.ndarray) -> list[RunLengths]:
    """Masks [n, H, W] of any type as COCO's run lengths: a hundredth of the memory, to be kept until all is judged."""
    pixels = np.asfortranarray(np.asarray(masks).astype(bool).transpose(1, 2, 0), np.uint8)
    encoded: list[RunLengths] = coco_mask.encode(pixels)
    return encoded


def _mean(precision: np.ndarray) -> float | None:
    """Over what is defined; the protocol writes −1 where there is nothing to find."""
    defined = precision[precision > -1]
    return float(defined.mean()) if defined.size else None


class _Protocol(COCOeval):  # type: ignore[misc]  # without types
    """COCOeval that is given its objects one image after another."""

    def __init__(self, kind: Kind, images: int, num_labels: int) -> None:
        super().__init__(iouType="segm" if kind == "mask" else "bbox")
        self.params.imgIds, self.params.catIds = list(range(images)), list(range(num_labels))
        self.params.maxDets = [MOST]
        self.kind, self.num_labels = kind, num_labels
        self.objects = self.found = 0
        self._gts: Things = defaultdict(list)
        self._dts: Things = defaultdict(list)

    def add(self, image: int, truth: ImageTruth, found: ImageFound) -> None:
        crowd, ignore = (_flags(flags, len(truth.boxes)) for flags in (truth.crowd, truth.ignore))
        things = self._things(image, truth, truth.size, "truth")
        if truth.areas is not None:
            things["area"] = truth.areas
        elif truth.masks is not None and self.kind == "box":
            things["area"] = coco_mask.area(_as_run_lengths(truth.masks))
        things |= {"iscrowd": crowd.astype(int), "ignore": (crowd | ignore).astype(int)}
        self.objects += int((~(crowd | ignore)).sum())
        self._file(self._gts, image, truth.labels, things)
        things = self._things(image, found, truth.size, "detections")
        things["score"] = scores = np.asarray(found.scores, np.float64)
        if not np.isfinite(scores).all():
            raise ValueError(f"image {image}: a detection's score is NaN or infinite")
        self.found += len(found.boxes)
        self._file(self._dts, image, found.labels, things)

    def _things(self, image: int, given: ImageTruth | ImageFound, size: tuple[int, int], what: str) -> Columns:
        """The columns that both sides have, checked."""
        boxes, labels = np.asarray(given.boxes, np.float64).reshape(-1, 4), np.asarray(given.labels)
        if len(boxes) != len(labels) or not np.isfinite(boxes).all():
            raise ValueError(f"image {image}: {what} with {len(boxes)} boxes and {len(labels)} labels, or a box of NaN")
        if len(labels) and not (labels.min() >= 0 and labels.max() < self.num_labels):
            raise ValueError(f"image {image}: {what} with a label outside of 0 … {self.num_labels - 1}")
        corner, sides = boxes[:, :2], boxes[:, 2:] - boxes[:, :2]
        things: Columns = {"bbox": np.concatenate([corner, sides], axis=1), "area": sides.prod(axis=1)}
        if self.kind == "mask":
            masks = _as_run_lengths(given.masks) if given.masks is not None else []
            if len(masks) != len(boxes) or any(tuple(mask["size"]) != tuple(size) for mask in masks):
                raise ValueError(f"image {image}: {what} need a mask of {size} (height, width) for each of their boxes")
            things |= {"segmentation": masks, "area": coco_mask.area(masks)}
        return things

    def _file(self, place: Things, image: int, labels: Any, things: Columns) -> None:
        for number, label in enumerate(np.asarray(labels).tolist()):
            thing = {name: values[number] for name, values in things.items()}
            place[image, label].append(cast(Thing, {"id": number + 1, **thing}))  # 0 would mean: not matched

    def _prepare(self) -> None:
        """Nothing is left to do; the parent would read files here, and forget what to ignore."""

    def precision(self) -> np.ndarray:
        """[thresholds, recalls, labels, areas]; −1 where there is nothing to find."""
        with redirect_stdout(None):
            self.evaluate()
            self.accumulate()
        return np.asarray(self.eval["precision"])[..., 0]

    def best_score(self) -> float | None:
        """After `precision`: where F1 = 2 TP / (reported + objects) is highest, over all images and labels."""
        parts = [part for part in self.evalImgs if part is not None and part["aRng"] == self.params.areaRng[0]]
        if not parts:
            return None
        counts = ~np.concatenate([np.asarray(part["dtIgnore"], bool)[0] for part in parts])
        scores = np.concatenate([np.asarray(part["dtScores"], float) for part in parts])[counts]
        right = np.concatenate([np.asarray(part["dtMatches"])[0] > 0 for part in parts])[counts]
        order = np.argsort(-scores, kind="stable")
        true, reported = np.cumsum(right[order]), np.arange(1, len(order) + 1)
        last = np.append(np.diff(scores[order]) != 0, True)[: len(order)]  # equal scores are reported together
        f1 = np.where(last, 2 * true / (reported + self.objects), 0.0)
        return float(scores[order][np.argmax(f1)]) if right.any() else None


def _flags(flags: np.ndarray | None, count: int) -> np.ndarray:
    return np.zeros(count, bool) if flags is None else np.asarray(flags, bool)


def _as_run_lengths(masks: Masks) -> Sequence[RunLengths]:
    return run_lengths(masks) if isinstance(masks, np.ndarray) else masks
