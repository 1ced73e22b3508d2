"""Explaining images with a trained model, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from manylabel.data.given_image import GivenImage, ImageLike, read_images
from manylabel.error import ConfigError, DataError
from manylabel.explain.attention import attention_grids
from manylabel.explain.cam import eigen_cam, grad_cam, grad_cam_pp
from manylabel.explain.explanation import Explanation, Facts
from manylabel.explain.frame import Frame
from manylabel.explain.gradient import Backwards, StageMap, final_map
from manylabel.explain.method import ATTENTION, AUTO, choose
from manylabel.explain.readout import scores_and_readout
from manylabel.features import FINAL, Features
from manylabel.inference.labels import LabelPredictor
from manylabel.inference.predictor import Predictor
from manylabel.suggest import closest

MOST_LABELS = 5  # of an image, where nobody names labels
PHOTO_SIDE = 512  # pixels that an explanation keeps of its photo


@dataclass(frozen=True)
class _Read:
    """An image on its way through a batch."""

    name: str
    pixels: Tensor | None = None
    photo: Image.Image | None = None
    size: tuple[int, int] = (0, 0)
    error: str | None = None


class Explainer:
    """A predictor and a way to explain what it says."""

    def __init__(
        self,
        predictor: Predictor | LabelPredictor,
        method: str = AUTO,
        stage: str | None = None,
        task: str | None = None,
    ) -> None:
        """`task`: of a model with several."""
        found: Any = predictor.of(task) if isinstance(predictor, Predictor) else predictor
        if not isinstance(found, LabelPredictor):
            raise ConfigError(
                f"task {found.bundle.name} finds objects, whose boxes say where they are; explain one with labels"
            )
        self.predictor = predictor = found
        self.model = predictor.model
        self.method, self.stages = choose(self.model, method, stage)
        cheap = self.method == ATTENTION or self.stages == (FINAL,)
        self._backwards = None if cheap else Backwards(self.model, predictor.contiguous, self.stages[0])

    def columns(self, names: Sequence[str]) -> list[int]:
        """Positions of labels that are asked for by name."""
        known = {name.casefold(): i for i, name in enumerate(self.predictor.labels)}
        for name in names:
            if name.casefold() not in known:
                raise DataError(f"the model has no label {name!r}{closest(name, self.predictor.labels)}")
        return list(dict.fromkeys(known[name.casefold()] for name in names))

    def stream(
        self,
        images: ImageLike | Iterable[ImageLike],
        labels: Sequence[str] | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> Iterator[list[Explanation]]:
        """For each image its explanations, in order; one with an error for an image, among several, that cannot be read."""
        asked = self.columns(labels) if labels else None
        waiting: list[_Read] = []
        for image in read_images(images, self.predictor.at_least):
            waiting.append(self._prepared(image))
            if len(waiting) >= self.predictor.batch_size:
                yield from self._answer(waiting, asked)
                advance(len(waiting))
                waiting = []
        if waiting:
            yield from self._answer(waiting, asked)
            advance(len(waiting))

    def _prepared(self, image: GivenImage) -> _Read:
        if image.picture is None:
            return _Read(image.name, error=image.error)
        photo = image.picture.copy()
        photo.thumbnail((PHOTO_SIDE, PHOTO_SIDE))
        return _Read(image.name, self.predictor.prepared(image.picture), photo, image.size)

    def _answer(self, waiting: Sequence[_Read], asked: list[int] | None) -> Iterator[list[Explanation]]:
        good = [read.pixels for read in waiting if read.pixels is not None]
        wanted = None if asked is None else [asked] * len(good)
        found = iter(self.explain_batch(torch.stack(good), wanted) if good else ())
        for read in waiting:
            if read.error is not None:
                yield [Explanation(read.name, error=read.error)]
                continue
            frame = Frame.of(self.predictor.bundle.preprocess, *read.size)
            yield [
                Explanation(read.name, size=read.size, frame=frame, photo=read.photo, **facts) for facts in next(found)
            ]

    def explain_batch(self, pixels: Tensor, asked: Sequence[Sequence[int]] | None = None) -> list[list[Facts]]:
        """Of transformed images uint8 [B, 3, S, S] what the explanations hold beside the photo, for the labels asked for
        of each image, or for those it shows."""
        predictor, images = self.predictor, pixels.to(self.predictor.device)
        with torch.no_grad():
            features = self.model.backbone(images, task=self.model.name)
        logits, readout = scores_and_readout(self.model, features)
        scores = predictor.task.probabilities(logits).cpu().numpy()
        thresholds = predictor.bundle.thresholds
        above = predictor.task.decide(scores, thresholds)
        chosen = asked or [shown_labels(s, a) for s, a in zip(scores, above, strict=True)]
        grids, heads = self.grids(images, features, chosen)
        return [
            [
                {
                    "label": predictor.labels[label],
                    "score": float(scores[i, label]),
                    "threshold": float(thresholds[label]),
                    "above": bool(above[i, label]),
                    "method": self.method,
                    "stage": "+".join(self.stages),
                    "grids": {stage: grid[i, k] for stage, grid in grids.items()},
                    "head_grids": {stage: grid[i, k] for stage, grid in heads.items()},
                    "experts": readout.experts(i, label),
                    "shares": readout.shares(i, label),
                }
                for k, label in enumerate(labels)
            ]
            for i, labels in enumerate(chosen)
        ]

    def grids(
        self, images: Tensor, features: Features, chosen: Sequence[Sequence[int]]
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]:
        """Of the labels chosen for each image: stage → [B, L, rows, columns], and [B, L, h, …] of attention heads."""
        most = max(map(len, chosen))
        columns = torch.tensor([[*labels, *[0] * (most - len(labels))] for labels in chosen], device=images.device)
        if self.method == ATTENTION:
            heads = attention_grids(self.model, features, columns, self.stages)
            mean = {stage: grid.mean(dim=2).cpu().numpy() for stage, grid in heads.items()}
            return mean, {stage: grid.cpu().numpy() for stage, grid in heads.items()}
        maps = class_maps(self.stage_map(images, features), columns, self.method)
        return {self.stages[0]: maps.float().cpu().numpy()}, {}

    def stage_map(self, images: Tensor, features: Features) -> StageMap:
        if self._backwards is None:
            return final_map(self.model, features)
        return self._backwards(images)


def class_maps(found: StageMap, columns: Tensor, method: str) -> Tensor:
    """Maps of labels `columns` [B, L]: [B, L, H, W], by L backward passes (Eigen-CAM: none)."""
    if method == "eigen_cam":
        return eigen_cam(found.a)[:, None].expand(-1, columns.shape[1], -1, -1)
    formula = {"grad_cam": grad_cam, "grad_cam_pp": grad_cam_pp}[method]
    return torch.stack([formula(found.a, found.gradient(column)) for column in columns.unbind(1)], dim=1)


def shown_labels(scores: np.ndarray, above: np.ndarray) -> list[int]:
    """The labels above their thresholds, highest score first, five at most; or the best one."""
    ranked = [int(i) for i in np.argsort(-scores, kind="stable")]
    return [i for i in ranked if above[i]][:MOST_LABELS] or ranked[:1]
