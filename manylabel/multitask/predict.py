"""A model for several tasks at work: TaskPredictor.load(bundle).predict(images, task="objects")."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from manylabel.allocator import keep_memory
from manylabel.bundle import check_answer
from manylabel.data.given_image import ImageLike, read_images
from manylabel.data.object_transform import ObjectTransform, Placement
from manylabel.data.transform import evaluation_transform, needed_side
from manylabel.error import ManylabelError
from manylabel.inference.prediction import Prediction, Unread, prediction_of
from manylabel.multitask.bundle import MultiTaskBundle, load_multitask_bundle
from manylabel.multitask.model import judging
from manylabel.report.drawing import COLOURS
from manylabel.runtime.fork import one_thread_in_children
from manylabel.task import Classification, Detection
from manylabel.task.stored_pixels import in_stored_pixels


@dataclass(frozen=True)
class FoundObject:
    """One object in an image, in the pixels of the image as it is stored."""

    label: str
    score: float
    box: tuple[float, float, float, float]  # left, top, right, bottom
    mask: dict[str, Any] | None = field(default=None, repr=False)  # COCO's run lengths {"size", "counts"}

    def plain(self) -> dict[str, Any]:
        shown = {"label": self.label, "score": round(self.score, 4), "box": [round(side, 1) for side in self.box]}
        if self.mask is None:
            return shown
        return {**shown, "mask": {"size": list(self.mask["size"]), "counts": self.mask["counts"].decode()}}

    def pixels(self) -> np.ndarray | None:
        """[H, W] bool"""
        if self.mask is None:
            return None
        from pycocotools import mask

        found: np.ndarray = mask.decode(self.mask).astype(bool)
        return found


@dataclass(frozen=True)
class FoundObjects:
    """All objects of one image, highest score first; or in `error` why it could not be read: `objects` then raises a
    DecodeError when it is looked into."""

    image: str
    objects: tuple[FoundObject, ...] = ()
    error: str | None = None

    def __post_init__(self) -> None:
        if self.error is not None:
            object.__setattr__(self, "objects", Unread(f"{self.image}: {self.error}"))

    def plain(self, top: int | None = None) -> dict[str, Any]:
        """For JSON."""
        if self.error is not None:
            return {"image": self.image, "error": self.error}
        return {"image": self.image, "objects": [one.plain() for one in self.objects[:top]]}


class TaskPredictor:
    """A bundle of several tasks on a device; each call computes one task, with the experts that it uses."""

    def __init__(self, bundle: MultiTaskBundle, device: str | torch.device | None = None) -> None:
        keep_memory()
        one_thread_in_children()
        self.bundle = bundle
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.model = bundle.model.eval().to(self.device)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str | torch.device | None = None) -> TaskPredictor:
        """From a bundle folder, or the folder of a run."""
        return cls(load_multitask_bundle(Path(path)), device)

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.model.tasks

    def predict(
        self, images: ImageLike | Iterable[ImageLike], task: str, score: float | None = None
    ) -> list[Prediction] | list[FoundObjects]:
        """Labels, or objects whose score reaches `score` (default: where F1 was best), of every image in order.

        What is an image, and one that cannot be read: as for `Predictor.predict`.
        """
        self.model.number(task)
        if self.bundle.task(task).finds_objects:
            return list(self.find(images, task, score))
        return list(self.classify(images, task))

    def classify(self, images: ImageLike | Iterable[ImageLike], task: str) -> Iterator[Prediction]:
        preprocess, facts, kind = self.model.preprocess(task), self.bundle.tasks[task], self.bundle.task(task)
        transform, thresholds = evaluation_transform(preprocess), np.array(facts.thresholds)
        assert isinstance(kind, Classification)
        for image in read_images(images, needed_side(preprocess)):
            if image.picture is None:
                yield Prediction(image.name, error=image.error)
                continue
            pixels = torch.from_numpy(transform(image.picture))
            with judging(self.model):
                logits = check_answer(self.model(pixels[None].to(self.device), task).logits)
            scores = kind.probabilities(logits).cpu().numpy()[0]
            yield prediction_of(image.name, scores, facts.labels, thresholds, kind.one_label)

    def find(
        self, images: ImageLike | Iterable[ImageLike], task: str, score: float | None = None
    ) -> Iterator[FoundObjects]:
        facts, transform = self.bundle.tasks[task], ObjectTransform(self.model.preprocess(task))
        lowest = facts.thresholds[0] if score is None else score
        if score is not None and not 0 <= score <= 1:
            raise ManylabelError(f"score is {score}; it must be between 0 and 1")
        for image in read_images(images):  # boxes are in pixels of the whole image
            if image.picture is None:
                yield FoundObjects(image.name, error=image.error)
                continue
            place = transform.place(*image.picture.size)
            pixels = transform.pixels(image.picture, place)
            yield FoundObjects(image.name, self._objects(pixels, place, task, lowest))

    def _objects(self, pixels: Tensor, place: Placement, task: str, lowest: float) -> tuple[FoundObject, ...]:
        kind = self.bundle.task(task)
        assert isinstance(kind, Detection)
        with judging(self.model):
            features = self.model.features(pixels[None].to(self.device), task)
            check_answer(features.final)  # where it is NaN, a detector finds nothing, without a word
            detections = self.model.head(task)(features).detections[0]
            check_answer(detections.scores)
        found = in_stored_pixels(kind.decide(detections, [lowest]), place, kind.masks)
        names = self.bundle.tasks[task].labels
        return tuple(
            FoundObject(
                names[int(found.labels[i])],
                float(found.scores[i]),
                tuple(map(float, found.boxes[i])),  # type: ignore[arg-type]
                None if found.masks is None else found.masks[i],  # type: ignore[arg-type]
            )
            for i in range(len(found.scores))
        )


def overlay(picture: Image.Image, found: FoundObjects) -> Image.Image:
    """The picture with boxes, masks and names drawn on it."""
    shown = picture.convert("RGB")
    colours = {label: COLOURS[i % len(COLOURS)] for i, label in enumerate(sorted({o.label for o in found.objects}))}
    for one in reversed(found.objects):  # the surest on top
        pixels = one.pixels()
        if pixels is not None:
            tint = Image.new("RGB", shown.size, colours[one.label])
            shown.paste(tint, mask=Image.fromarray((110 * pixels).astype(np.uint8)))
    draw = ImageDraw.Draw(shown)
    for one in reversed(found.objects):
        left, top, right, bottom = one.box
        if right > left and bottom > top:
            draw.rectangle((left, top, right, bottom), outline=colours[one.label], width=2)
        text = f"{one.label} {one.score:.2f}"
        corner = (left, max(0.0, top - 12))
        draw.rectangle(draw.textbbox(corner, text), fill=colours[one.label])
        draw.text(corner, text, fill="white")
    return shown
