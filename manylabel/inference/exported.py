"""Labels of images by an exported file: the same pictures, scores, thresholds and decisions as of its bundle, no torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np
from PIL import Image

from manylabel.core.decision import scores_of
from manylabel.data.transform import evaluation_transform, needed_side
from manylabel.error import BundleError
from manylabel.inference.exported_file import ExportedFile
from manylabel.inference.prediction import Prediction, predictions_of
from manylabel.inference.task_predictor import TaskPredictor


class ExportedLabels(TaskPredictor[np.ndarray, Prediction]):
    """One task of an exported file."""

    def __init__(self, file: ExportedFile, task: str, batch_size: int = 32) -> None:
        super().__init__(batch_size)
        self.file, self.task = file, file.tasks[task]
        self.facts = self.task.facts
        self.at_least = needed_side(self.facts.preprocess)
        self._square = evaluation_transform(self.facts.preprocess)
        how = self.facts.preprocess
        self._mean, self._std = (np.array(value, np.float32)[:, None, None] for value in (how.mean, how.std))

    @property
    def labels(self) -> tuple[str, ...]:
        return self.facts.labels.names

    @property
    def bundle(self) -> NoReturn:
        raise self._refusal()

    @property
    def model(self) -> NoReturn:
        raise self._refusal()

    def _refusal(self) -> BundleError:
        return BundleError(
            f"{self.file.path} holds no weights that torch could use; give the run or bundle it came from"
        )

    def prepared(self, picture: Image.Image) -> np.ndarray:
        """uint8: of the plain form [3, S, S], of the full form the picture itself [H, W, 3]."""
        return self._square(picture) if self.file.form == "plain" else np.asarray(picture)

    def answer(self, names: Sequence[str], images: Sequence[np.ndarray]) -> Iterator[Prediction]:
        scores = self.score_batch(images)
        return predictions_of(names, scores, self.labels, self.facts.thresholds, self.task.one_label)

    def score_batch(self, images: Sequence[np.ndarray]) -> np.ndarray:
        """Probabilities [B, N] of prepared images."""
        return self.scores(self.logits(images))

    def scores(self, logits: np.ndarray) -> np.ndarray:
        """[B, N] float32"""
        assert self.facts.activation is not None
        return scores_of(logits, self.facts.activation)

    def logits(self, images: Sequence[np.ndarray]) -> np.ndarray:
        """[B, N] of prepared images."""
        if self.file.form == "plain":
            found = self._run("logits", self.normalised(images))
        else:
            found = np.concatenate([self._run("logits", image) for image in images])
        if not np.isfinite(found).all():
            raise BundleError(f"{self.file.path}: the model's scores are no numbers; export it again")
        return found

    def normalised(self, images: Sequence[np.ndarray]) -> np.ndarray:
        """Prepared images as the plain form takes them, float32 [B, 3, S, S]."""
        pixels = np.stack(images).astype(np.float32)
        pixels /= 255
        pixels -= self._mean
        pixels /= self._std  # step by step, so that they are rounded as torch rounds them
        return pixels

    def pixels(self, picture: Image.Image) -> np.ndarray:
        """As the network sees them, uint8 [3, S, S]."""
        return self._run("pixels", np.asarray(picture))[0] if self.file.form == "full" else self._square(picture)

    def _run(self, what: str, pixels: np.ndarray) -> np.ndarray:
        name = self.task.outputs[what]
        return self.file.engine.run({self.file.input: pixels}, (name,))[name]

    def unread(self, name: str, error: str) -> Prediction:
        return Prediction(name, error=error)
