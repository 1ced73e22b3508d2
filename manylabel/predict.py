"""The one door to a trained model: Predictor.load(bundle).predict(images)."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from manylabel.allocator import keep_memory
from manylabel.backbone import Backbone
from manylabel.bundle import Bundle, check_answer, load_bundle
from manylabel.data.given_image import GivenImage, ImageLike, read_image, read_images
from manylabel.data.shard.packed import PackedImage, PackedImages, find_packed
from manylabel.data.transform import evaluation_transform, needed_side
from manylabel.data.walk import walk_images
from manylabel.engine import Engine
from manylabel.engine.outputs import LogitOutputs
from manylabel.engine.torch import TorchEngine
from manylabel.error import ConfigError, DataError
from manylabel.inference.prediction import Prediction, prediction_of
from manylabel.new_labels import with_new_labels
from manylabel.runtime.fork import one_thread_in_children


class Predictor:
    """A bundle on a device. Another engine may compute its logits in place of torch; labels, thresholds and what makes
    scores of logits are the bundle's."""

    def __init__(
        self,
        bundle: Bundle,
        device: str | torch.device | None = None,
        batch_size: int = 32,
        engine: Engine | None = None,
    ) -> None:
        keep_memory()
        one_thread_in_children()
        self.bundle = bundle
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.batch_size = checked_batch_size(batch_size)
        self.model = bundle.model.eval().to(self.device)
        self.engine = engine or TorchEngine(LogitOutputs(self.model), self.device)
        self.task = bundle.task
        self._square = evaluation_transform(bundle.preprocess)
        self.at_least = needed_side(bundle.preprocess)

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: str | torch.device | None = None) -> Predictor:
        """From a bundle folder, or the folder of a run."""
        return cls(load_bundle(Path(path)), device)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.bundle.labels.names

    @cached_property
    def contiguous(self) -> Backbone:
        """The backbone once more, for maps of where it looked."""
        return self.model.backbone.contiguous()

    def for_labels(
        self, labels: Sequence[str], *, vectors: np.ndarray | None = None, text_file: str | None = None
    ) -> Predictor:
        """The same model on torch, asked about other labels; it must be a zero-shot one. See `with_new_labels`."""
        bundle = with_new_labels(self.bundle, labels, vectors=vectors, text_file=text_file)
        return Predictor(bundle, self.device, self.batch_size)

    def predict(self, images: ImageLike | Iterable[ImageLike]) -> list[Prediction]:
        """One prediction per image, in order; what is an image: `manylabel.data.given_image`.

        One image alone that cannot be read raises a DecodeError; among several it gives a prediction with an `error`.
        """
        return list(self.stream(images))

    def stream(
        self, images: ImageLike | Iterable[ImageLike], advance: Callable[[int], None] = lambda _: None
    ) -> Iterator[Prediction]:
        """The same one by one, for any number of images in bounded memory."""
        waiting: list[tuple[str, Tensor | str]] = []
        for image in read_images(images, self.at_least):
            waiting.append((image.name, self._prepared(image)))
            if len(waiting) >= self.batch_size:
                yield from self._answer(waiting)
                advance(len(waiting))
                waiting = []
        if waiting:
            yield from self._answer(waiting)
            advance(len(waiting))

    def read(self, image: ImageLike, number: int = 0) -> tuple[str, tuple[Image.Image, Tensor] | str]:
        """Its name; and the upright picture and what the model takes of it, uint8 [3, S, S], or why there is none."""
        found = read_image(image, number, self.at_least)
        prepared = self._prepared(found)
        if found.picture is None or isinstance(prepared, str):
            return found.name, str(prepared)
        return found.name, (found.picture, prepared)

    def transform(self, picture: Image.Image) -> Tensor:
        """What the model takes of an upright picture, uint8 [3, S, S]."""
        return torch.from_numpy(self._square(picture))

    def _prepared(self, image: GivenImage) -> Tensor | str:
        """What the model takes, or why there is nothing."""
        return str(image.error) if image.picture is None else self.transform(image.picture)

    def _answer(self, waiting: Sequence[tuple[str, Tensor | str]]) -> Iterator[Prediction]:
        good = [tensor for _, tensor in waiting if isinstance(tensor, Tensor)]
        scores = iter(self.score_batch(torch.stack(good)) if good else ())
        for name, tensor in waiting:
            yield self._label(name, next(scores)) if isinstance(tensor, Tensor) else Prediction(name, error=tensor)

    def score_batch(self, images: Tensor) -> np.ndarray:
        """Probabilities [B, N] of transformed images uint8 [B, 3, S, S]."""
        logits = torch.from_numpy(self.engine(images.cpu().numpy())["logits"])
        return self.task.probabilities(check_answer(logits)).numpy()

    def _label(self, name: str, scores: np.ndarray) -> Prediction:
        return prediction_of(name, scores, self.labels, self.bundle.thresholds, self.task.one_label)


def checked_batch_size(size: int) -> int:
    """A whole number from 1 on."""
    try:
        number = 0 if isinstance(size, bool) else operator.index(size)
    except TypeError:
        number = 0
    if number < 1:
        raise ConfigError(f"batch_size is a whole number from 1 on, not {size!r}")
    return number


class FoundImages:
    """Files, and images inside shards, in the order they were asked for."""

    def __init__(self, parts: Sequence[Sequence[Path] | PackedImages]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self) -> Iterator[Path | PackedImage]:
        for part in self.parts:
            yield from part


def find_images(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> FoundImages:
    """Of one path or several: files as they are, every image inside folders, and every image in tar and Parquet shards,
    which stay packed.

    A file that is not there is an error of its own when it is read, unless none of them is there.
    """
    given = list(map(Path, [paths] if isinstance(paths, (str, os.PathLike)) else paths))
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
