"""Explaining images in one call."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from manylabel.bundle import Bundle, TaskBundle
from manylabel.data.given_image import ImageLike
from manylabel.explain.every_stage import explainer_for
from manylabel.explain.explanation import Explanation
from manylabel.explain.method import AUTO
from manylabel.inference.predictor import Predictor


def explain(
    model: Bundle | TaskBundle | Predictor | str | os.PathLike[str],
    images: ImageLike | Iterable[ImageLike],
    labels: Sequence[str] | None = None,
    method: str = AUTO,
    stage: str | None = None,
    task: str | None = None,
) -> list[Explanation]:
    """Where in each image the model finds each label: images in order, and their labels in the order asked for.

    What is an image, and one that cannot be read: as for `Predictor.predict`.
    labels None: those above their thresholds, five at most, else the best one. method: auto, attention, grad_cam,
    grad_cam_pp or eigen_cam. stage: of the backbone; None = final, or all that the attention looks at; all = each of them,
    for every label. task: of a model with several.
    """
    if not isinstance(model, Predictor):
        model = Predictor(model) if isinstance(model, (Bundle, TaskBundle)) else Predictor.load(model)
    if isinstance(labels, str):
        labels = [labels]
    explainer = explainer_for(model, method, stage, task)
    return [found for of_image in explainer.stream(images, labels) for found in of_image]
