"""An exported file beside the bundle it came from, on the same pictures: are they equal, and which is faster?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from PIL import Image

from manylabel.core.decision import decide
from manylabel.error import EngineError
from manylabel.exporting.pictures import Pictures
from manylabel.inference.exported import ExportedLabels
from manylabel.inference.labels import LabelPredictor
from manylabel.labels import support
from manylabel.metric import average_precision

FEWEST = 20  # positives from which on a label's own average precision tells something
ROUNDS = 5  # of each side, in turns
AT_ONCE = 16


@dataclass(frozen=True)
class Limits:
    """How far a file may be from its bundle; None = that is not asked."""

    logits: float | None = None
    flipped: float | None = None  # share of the decisions
    furthest: float | None = None  # distance of a flipped decision's score from its threshold
    pixels: int | None = None  # grey levels
    mean_ap: float | None = None  # points that may be lost
    label_ap: float | None = None  # the same of a label with FEWEST positives


LIMITS = {
    ("plain", "f32"): Limits(logits=1e-4, flipped=0.0),
    ("full", "f32"): Limits(flipped=0.002, furthest=0.02, pixels=2),
    ("plain", "int8"): Limits(mean_ap=0.5, label_ap=3.0),
}


@dataclass(frozen=True)
class Proof:
    """What was found; average precision in points, None where nothing is known of the pictures."""

    source: str
    images: int
    decisions: int
    logits: float  # largest difference
    flipped: int
    furthest: float
    pixels: int | None
    lost_mean_ap: float | None
    lost_label_ap: float | None
    bundle_images_per_second: float
    file_images_per_second: float
    threads: int

    @property
    def faster(self) -> bool:
        return self.file_images_per_second > self.bundle_images_per_second

    def told(self) -> dict[str, Any]:
        """For the metadata."""
        return {**asdict(self), "faster": self.faster}


def prove(file: ExportedLabels, bundle: LabelPredictor, pictures: Pictures, limits: Limits) -> Proof:
    """The figures; an EngineError where one is beyond its limit."""
    ours, theirs, pixels = _logits(file, bundle, pictures.given)
    found = _found(file, bundle, pictures, ours, theirs, pixels)
    beyond = list(_beyond(found, limits))
    if beyond:
        raise EngineError(
            f"on {found.source} the exported file differs from the bundle: {'; '.join(beyond)}; it is not kept"
        )
    return found


def _logits(
    file: ExportedLabels, bundle: LabelPredictor, given: Sequence[Image.Image]
) -> tuple[np.ndarray, np.ndarray, int | None]:
    """Of both [n, N], in batches of 1, 5 and more; and how far the pixels of the full form are from the bundle's."""
    ours, theirs, pixels = [], [], []
    for batch in _batches(given):
        prepared = [bundle.prepared(picture) for picture in batch]
        theirs.append(bundle.engine(torch.stack(prepared).numpy())["logits"])
        ours.append(file.logits([file.prepared(picture) for picture in batch]))
        if file.file.form == "full":
            seen = [file.pixels(picture).astype(np.int16) for picture in batch]
            pixels += [np.abs(a - b.numpy()).max() for a, b in zip(seen, prepared, strict=True)]
    return np.concatenate(ours), np.concatenate(theirs), int(max(pixels)) if pixels else None


def _batches(given: Sequence[Image.Image]) -> Iterator[Sequence[Image.Image]]:
    ends = [0, 1, 6, *range(6 + AT_ONCE, len(given) + AT_ONCE, AT_ONCE)]
    yield from (given[start:end] for start, end in pairwise(ends) if start < len(given))


def _found(
    file: ExportedLabels,
    bundle: LabelPredictor,
    pictures: Pictures,
    ours: np.ndarray,
    theirs: np.ndarray,
    pixels: int | None,
) -> Proof:
    our_scores, their_scores = file.scores(ours), bundle.task.probabilities(torch.from_numpy(theirs)).numpy()
    thresholds, single = bundle.bundle.thresholds, bundle.task.one_label
    flips = decide(our_scores, thresholds, single) != decide(their_scores, thresholds, single)
    best = their_scores.max(axis=1, keepdims=True)  # what a score must reach where there is one label only
    distance = np.abs(their_scores - (best if single else thresholds))
    lost_mean, lost_label = _lost(our_scores, their_scores, pictures.matrix)
    of_bundle, of_file = _speeds(bundle, file, pictures.given[:AT_ONCE])
    return Proof(
        pictures.source,
        len(ours),
        flips.size,
        float(np.abs(ours - theirs).max()),
        int(flips.sum()),
        float(distance[flips].max(initial=0)),
        pixels,
        lost_mean,
        lost_label,
        round(of_bundle, 1),
        round(of_file, 1),
        torch.get_num_threads(),
    )


def _lost(ours: np.ndarray, theirs: np.ndarray, matrix: np.ndarray | None) -> tuple[float | None, float | None]:
    """Points of mean average precision, and of the label that loses most among those with enough positives."""
    if matrix is None:
        return None, None
    lost = 100 * (average_precision(theirs, matrix) - average_precision(ours, matrix))  # [N]
    enough = (support(matrix) >= FEWEST) & ~np.isnan(lost)
    mean = None if np.isnan(lost).all() else float(np.nanmean(lost))
    return mean, float(lost[enough].max()) if enough.any() else None


def _speeds(bundle: LabelPredictor, file: ExportedLabels, given: Sequence[Image.Image]) -> tuple[float, float]:
    """Images per second of both, from the decoded picture to its scores, in turns; the fastest round counts."""

    def of_bundle() -> None:
        bundle.score_batch(torch.stack([bundle.prepared(picture) for picture in given]))

    def of_file() -> None:
        file.score_batch([file.prepared(picture) for picture in given])

    seconds = [[_seconds(work) for work in (of_bundle, of_file)] for _ in range(ROUNDS)]
    best = np.min(seconds, axis=0)
    return float(len(given) / best[0]), float(len(given) / best[1])


def _seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _beyond(found: Proof, limits: Limits) -> Iterator[str]:
    """What is beyond its limit, in words; NaN is beyond all."""
    share = found.flipped / max(found.decisions, 1)
    if limits.logits is not None and not found.logits <= limits.logits:
        yield f"logits differ by {found.logits:.2g} (limit {limits.logits:g})"
    if limits.pixels is not None and (found.pixels or 0) > limits.pixels:
        yield f"pixels differ by {found.pixels} grey levels (limit {limits.pixels})"
    if limits.flipped is not None and share > limits.flipped:
        yield f"{found.flipped} of {found.decisions} decisions are others (limit {limits.flipped:.1%})"
    if limits.furthest is not None and found.furthest > limits.furthest:
        yield f"a flipped score lies {found.furthest:.3f} from its threshold (limit {limits.furthest:g})"
    if limits.mean_ap is not None and found.lost_mean_ap is None:
        yield "nothing is known of what is in these images, so that what is lost cannot be told"
    for lost, limit, what in (
        (found.lost_mean_ap, limits.mean_ap, "mAP loses"),
        (found.lost_label_ap, limits.label_ap, f"a label with {FEWEST} positives or more loses"),
    ):
        if limit is not None and lost is not None and lost > limit:
            yield f"{what} {lost:.2f} points (limit {limit:g})"
