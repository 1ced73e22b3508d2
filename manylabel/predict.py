"""The one door to a trained model: Predictor.load(bundle).predict(images)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from manylabel.allocator import keep_memory
from manylabel.bundle import Bundle, load_bundle
from manylabel.data.decode import decode, upright_rgb
from manylabel.data.shard.packed import PackedImage, PackedImages, find_packed
from manylabel.data.transform import evaluation_transform, needed_side
from manylabel.data.walk import walk_images
from manylabel.error import DataError, DecodeError
from manylabel.new_labels import with_new_labels

ImageLike = str | os.PathLike[str] | bytes | BinaryIO | Image.Image | np.ndarray | PackedImage


@dataclass(frozen=True)
class LabelScore:
    """One label of one image."""

    label: str
    score: float
    threshold: float
    above: bool


@dataclass(frozen=True)
class Prediction:
    """All labels of one image, highest score first; or the reason why there are none."""

    image: str
    labels: tuple[LabelScore, ...] = ()
    error: str | None = None

    @property
    def present(self) -> list[str]:
        """The labels above their thresholds."""
        return [entry.label for entry in self.labels if entry.above]

    def plain(self, top: int | None = None) -> dict[str, Any]:
        """For JSON."""
        if self.error is not None:
            return {"image": self.image, "error": self.error}
        return {"image": self.image, "labels": [vars(entry) for entry in self.labels[:top]]}


class Predictor:
    """A bundle on a device."""

    def __init__(self, bundle: Bundle, device: str | torch.device | None = None, batch_size: int = 32) -> None:
        keep_memory()
        self.bundle = bundle
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.batch_size = batch_size
        self.model = bundle.model.eval().to(self.device)
        self.task = bundle.task
        self.transform = evaluation_transform(bundle.preprocess)
        self.at_least = needed_side(bundle.preprocess)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str | torch.device | None = None) -> Predictor:
        """From a bundle folder, or the folder of a run."""
        return cls(load_bundle(Path(path)), device)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.bundle.labels.names

    def for_labels(
        self, labels: Sequence[str], *, vectors: np.ndarray | None = None, text_file: str | None = None
    ) -> Predictor:
        """The same model, asked about other labels; it must be a zero-shot one. See `with_new_labels`."""
        bundle = with_new_labels(self.bundle, labels, vectors=vectors, text_file=text_file)
        return Predictor(bundle, self.device, self.batch_size)

    def predict(self, images: ImageLike | Iterable[ImageLike]) -> list[Prediction]:
        """One prediction per image, in order. An unreadable image gives a prediction with an error, not an exception."""
        return list(self.stream(as_many(images)))

    def stream(
        self, images: Iterable[ImageLike], advance: Callable[[int], None] = lambda _: None
    ) -> Iterator[Prediction]:
        """The same one by one, for any number of images in bounded memory."""
        waiting: list[tuple[str, Tensor | str]] = []
        for number, image in enumerate(images):
            waiting.append(self._prepare(image, number))
            if len(waiting) == self.batch_size:
                yield from self._answer(waiting)
                advance(len(waiting))
                waiting = []
        if waiting:
            yield from self._answer(waiting)
            advance(len(waiting))

    def _prepare(self, image: ImageLike, number: int) -> tuple[str, Tensor | str]:
        name, found = self.read(image, number)
        return name, found if isinstance(found, str) else found[1]

    def read(self, image: ImageLike, number: int = 0) -> tuple[str, tuple[Image.Image, Tensor] | str]:
        """Its name; and the upright picture and what the model takes of it, uint8 [3, S, S], or why there is none."""
        name = os.fspath(image) if isinstance(image, (str, os.PathLike)) else f"image {number + 1}"
        if isinstance(image, PackedImage):
            name = image.name
        try:
            picture = self._decode(image)
            return name, (picture, self.transform(picture))
        except (DecodeError, TypeError, ValueError, OSError) as error:
            return name, str(error)

    def _decode(self, image: ImageLike) -> Image.Image:
        if isinstance(image, PackedImage):
            return image.read(self.at_least)
        if isinstance(image, np.ndarray):
            image = Image.fromarray(image)
        if isinstance(image, Image.Image):
            return upright_rgb(image)  # as for a file: turned, white behind transparency
        return decode(image, at_least=self.at_least)

    def _answer(self, waiting: Sequence[tuple[str, Tensor | str]]) -> Iterator[Prediction]:
        good = [tensor for _, tensor in waiting if isinstance(tensor, Tensor)]
        scores = iter(self.score_batch(torch.stack(good)) if good else ())
        for name, tensor in waiting:
            yield self._label(name, next(scores)) if isinstance(tensor, Tensor) else Prediction(name, error=tensor)

    @torch.inference_mode()
    def score_batch(self, images: Tensor) -> np.ndarray:
        """Probabilities [B, N] of transformed images uint8 [B, 3, S, S]."""
        return self.task.probabilities(self.model(images.to(self.device))).cpu().numpy()

    def _label(self, name: str, scores: np.ndarray) -> Prediction:
        thresholds = self.bundle.thresholds
        above = self.task.decide(scores[None], thresholds)[0]
        return Prediction(
            name,
            tuple(
                LabelScore(self.labels[i], float(scores[i]), float(thresholds[i]), bool(above[i]))
                for i in np.argsort(-scores, kind="stable")
            ),
        )


def as_many(images: ImageLike | Iterable[ImageLike]) -> Iterable[ImageLike]:
    """One image as a list of one; several as they are."""
    single = isinstance(images, (str, os.PathLike, bytes, Image.Image, np.ndarray, PackedImage))
    return [images] if single or hasattr(images, "read") else images  # type: ignore[list-item, return-value]


class FoundImages:
    """Files, and images inside shards, in the order they were asked for."""

    def __init__(self, parts: Sequence[Sequence[Path] | PackedImages]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self) -> Iterator[Path | PackedImage]:
        for part in self.parts:
            yield from part


def find_images(paths: Iterable[str | os.PathLike[str]]) -> FoundImages:
    """Files as they are, every image inside folders, and every image in tar and Parquet shards, which stay packed.

    A file that is not there is an error of its own when it is read, unless none of them is there.
    """
    given = list(map(Path, paths))
    parts = [_find(path) for path in given]
    if all(part is None for part in parts):
        raise DataError(f"{given[0]} does not exist" if given else "no image was named")
    return FoundImages([[path] if part is None else part for path, part in zip(given, parts, strict=True)])


def _find(path: Path) -> Sequence[Path] | PackedImages | None:
    if path.is_dir():
        inside = [path / name for name in walk_images(path)]
        found = inside or find_packed(path)
        if not found:
            raise DataError(f"there is no image in the folder {path}")
        return found
    return find_packed(path) or ([path] if os.path.exists(path) else None)
