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

from manylabel.data.decode import decode, upright_rgb
from manylabel.data.object_transform import ObjectTransform, Placement
from manylabel.data.shard.packed import PackedImage
from manylabel.data.transform import evaluation_transform, needed_side
from manylabel.error import DecodeError
from manylabel.multitask.bundle import MultiTaskBundle, load_multitask_bundle
from manylabel.multitask.find import in_stored_pixels
from manylabel.multitask.model import judging
from manylabel.multitask.settings import task_of
from manylabel.predict import ImageLike, LabelScore, Prediction, as_many
from manylabel.report.drawing import COLOURS


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
    """All objects of one image, highest score first; or the reason why there are none."""

    image: str
    objects: tuple[FoundObject, ...] = ()
    error: str | None = None

    def plain(self, top: int | None = None) -> dict[str, Any]:
        """For JSON."""
        if self.error is not None:
            return {"image": self.image, "error": self.error}
        return {"image": self.image, "objects": [one.plain() for one in self.objects[:top]]}


class TaskPredictor:
    """A bundle of several tasks on a device; each call computes one task, with the experts that it uses."""

    def __init__(self, bundle: MultiTaskBundle, device: str | torch.device | None = None) -> None:
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
        """Labels, or objects whose score reaches `score` (default: where F1 was best), of every image in order."""
        self.model.number(task)
        if self.bundle.config.tasks[task].kind == "detection":
            return list(self.find(as_many(images), task, score))
        return list(self.classify(as_many(images), task))

    def classify(self, images: Iterable[ImageLike], task: str) -> Iterator[Prediction]:
        preprocess, facts = self.model.preprocess(task), self.bundle.tasks[task]
        transform, kind = evaluation_transform(preprocess), task_of(self.bundle.config.tasks[task])
        thresholds = np.array(facts.thresholds)
        for name, read in _read(images, needed_side(preprocess)):
            if isinstance(read, str):
                yield Prediction(name, error=read)
                continue
            with judging(self.model):
                logits = self.model.logits(transform(read)[None].to(self.device), task)
            scores = kind.probabilities(logits).cpu().numpy()
            above = kind.decide(scores, thresholds)[0]
            order = np.argsort(-scores[0], kind="stable")
            labels = (
                LabelScore(facts.labels[i], float(scores[0, i]), float(thresholds[i]), bool(above[i])) for i in order
            )
            yield Prediction(name, tuple(labels))

    def find(self, images: Iterable[ImageLike], task: str, score: float | None = None) -> Iterator[FoundObjects]:
        facts, transform = self.bundle.tasks[task], ObjectTransform(self.model.preprocess(task))
        lowest = facts.thresholds[0] if score is None else score
        for name, read in _read(images, None):  # boxes are in pixels of the whole image
            if isinstance(read, str):
                yield FoundObjects(name, error=read)
                continue
            place = transform.place(*read.size)
            yield FoundObjects(name, self._objects(transform.pixels(read, place), place, task, lowest))

    def _objects(self, pixels: Tensor, place: Placement, task: str, lowest: float) -> tuple[FoundObject, ...]:
        masks = bool(self.model.head(task).options.masks)
        with judging(self.model):
            detections = self.model.detect(pixels[None].to(self.device), task)[0]
        found = in_stored_pixels(detections.part(detections.scores >= lowest), place, masks)
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


def _read(images: Iterable[ImageLike], at_least: int | None) -> Iterator[tuple[str, Image.Image | str]]:
    """Name and picture of each image, or why there is none."""
    for number, image in enumerate(images):
        name = os.fspath(image) if isinstance(image, (str, os.PathLike)) else f"image {number + 1}"
        try:
            if isinstance(image, PackedImage):
                name, picture = image.name, image.read(at_least)
            elif isinstance(image, (np.ndarray, Image.Image)):
                picture = upright_rgb(Image.fromarray(image) if isinstance(image, np.ndarray) else image)
            else:
                picture = decode(image, at_least=at_least)
            yield str(name), picture
        except (DecodeError, TypeError, ValueError, OSError) as error:
            yield str(name), str(error)
