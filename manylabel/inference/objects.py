"""Objects in images: boxes, and masks where the model learned them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from PIL import Image
from torch import Tensor

from manylabel.bundle import TaskBundle, check_answer
from manylabel.data.object_transform import ObjectTransform, Placement
from manylabel.detect import Detections
from manylabel.error import ManylabelError
from manylabel.inference.bundle_predictor import BundlePredictor
from manylabel.inference.found_objects import FoundObject, FoundObjects
from manylabel.task import Detection
from manylabel.task.stored_pixels import in_stored_pixels

Placed = tuple[Tensor, Placement]


class ObjectPredictor(BundlePredictor[Placed, FoundObjects]):
    """Objects whose score reaches `score` (default: where F1 was best); boxes are in pixels of the whole image."""

    task: Detection

    def __init__(
        self,
        bundle: TaskBundle,
        device: torch.device | str = "cpu",
        batch_size: int = 8,
        score: float | None = None,
    ) -> None:
        super().__init__(bundle, device, batch_size)
        if score is not None and not 0 <= score <= 1:
            raise ManylabelError(f"score is {score}; it must be between 0 and 1")
        self.lowest = float(bundle.thresholds[0]) if score is None else score
        self.transform = ObjectTransform(bundle.preprocess)

    def prepared(self, picture: Image.Image) -> Placed:
        place = self.transform.place(*picture.size)
        return self.transform.pixels(picture, place), place

    def answer(self, names: Sequence[str], images: Sequence[Placed]) -> Iterator[FoundObjects]:
        with torch.inference_mode():
            features = self.model.features(torch.stack([pixels for pixels, _ in images]).to(self.device))
            check_answer(features.final)  # where it is NaN, a detector finds nothing, without a word
            detections = self.model.answer(features).detections
        for name, (_, place), found in zip(names, images, detections, strict=True):
            yield FoundObjects(name, self._objects(found, place))

    def _objects(self, detections: Detections, place: Placement) -> tuple[FoundObject, ...]:
        check_answer(detections.scores)
        found = in_stored_pixels(self.task.decide(detections, [self.lowest]), place, self.task.masks)
        return tuple(
            FoundObject(
                self.labels[int(found.labels[i])],
                float(found.scores[i]),
                tuple(map(float, found.boxes[i])),  # type: ignore[arg-type]
                None if found.masks is None else found.masks[i],  # type: ignore[arg-type]
            )
            for i in range(len(found.scores))
        )

    def unread(self, name: str, error: str) -> FoundObjects:
        return FoundObjects(name, error=error)
