"""Labels of images: scores, and which of them reach their thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from manylabel.bundle import TaskBundle, check_answer
from manylabel.data.transform import Transform, evaluation_transform, needed_side
from manylabel.engine import Engine
from manylabel.engine.outputs import LogitOutputs
from manylabel.engine.torch import TorchEngine
from manylabel.inference.prediction import Prediction, prediction_of
from manylabel.inference.task_predictor import TaskPredictor
from manylabel.task import Classification


class LabelPredictor(TaskPredictor[Tensor, Prediction]):
    """Another engine may compute the logits in place of torch; labels, thresholds and what makes scores of logits are the
    bundle's."""

    task: Classification

    def __init__(
        self,
        bundle: TaskBundle,
        device: torch.device | str = "cpu",
        batch_size: int = 32,
        engine: Engine | None = None,
    ) -> None:
        super().__init__(bundle, device, batch_size)
        self.engine = engine or TorchEngine(LogitOutputs(self.model), self.device)
        self.prepared = partial(_pixels, evaluation_transform(bundle.preprocess))
        self.at_least = needed_side(bundle.preprocess)

    def answer(self, names: Sequence[str], images: Sequence[Tensor]) -> Iterator[Prediction]:
        thresholds, scores = self.bundle.thresholds, self.score_batch(torch.stack(list(images)))
        above = self.task.decide(scores, thresholds)
        for name, of_image, decided in zip(names, scores, above, strict=True):
            yield prediction_of(name, of_image, self.labels, thresholds, above=decided)

    def score_batch(self, images: Tensor) -> np.ndarray:
        """Probabilities [B, N] of transformed images uint8 [B, 3, S, S]."""
        logits = torch.from_numpy(self.engine(images.cpu().numpy())["logits"])
        return self.task.probabilities(check_answer(logits)).numpy()

    def unread(self, name: str, error: str) -> Prediction:
        return Prediction(name, error=error)


def _pixels(transform: Transform, picture: Image.Image) -> Tensor:
    """uint8 [3, S, S]"""
    return torch.from_numpy(transform(picture))
