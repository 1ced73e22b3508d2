"""Labels of images: scores, and which of them reach their thresholds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from manylabel.bundle import TaskBundle, check_answer
from manylabel.data.given_image import ImageLike, read_image
from manylabel.data.transform import evaluation_transform, needed_side
from manylabel.engine import Engine
from manylabel.engine.outputs import LogitOutputs
from manylabel.engine.torch import TorchEngine
from manylabel.inference.bundle_predictor import BundlePredictor
from manylabel.inference.prediction import Prediction, predictions_of
from manylabel.task import Classification


class LabelPredictor(BundlePredictor[Tensor, Prediction]):
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
        self._square = evaluation_transform(bundle.preprocess)
        self.at_least = needed_side(bundle.preprocess)

    def prepared(self, picture: Image.Image) -> Tensor:
        """What the model takes of an upright picture, uint8 [3, S, S]."""
        return torch.from_numpy(self._square(picture))

    def read(self, image: ImageLike, number: int = 0) -> tuple[str, tuple[Image.Image, Tensor] | str]:
        """Its name; and the upright picture and what the model takes of it, or why there is none."""
        found = read_image(image, number, self.at_least)
        if found.picture is None:
            return found.name, str(found.error)
        return found.name, (found.picture, self.prepared(found.picture))

    def answer(self, names: Sequence[str], images: Sequence[Tensor]) -> Iterator[Prediction]:
        scores = self.score_batch(torch.stack(list(images)))
        return predictions_of(names, scores, self.labels, self.bundle.thresholds, self.task.one_label)

    def score_batch(self, images: Tensor) -> np.ndarray:
        """Probabilities [B, N] of transformed images uint8 [B, 3, S, S]."""
        logits = torch.from_numpy(self.engine(images.cpu().numpy())["logits"])
        return self.task.probabilities(check_answer(logits)).numpy()

    def unread(self, name: str, error: str) -> Prediction:
        return Prediction(name, error=error)
