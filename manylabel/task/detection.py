"""Objects in an image: boxes, and masks where the data has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from manylabel.config import AugmentConfig, KindDefaults, Part, TaskConfig
from manylabel.core.decision import Activation
from manylabel.core.evidence import Evidence
from manylabel.core.output import Output
from manylabel.data.dataset import Batch
from manylabel.data.object_dataset import ObjectBatch, ObjectDataset
from manylabel.data.object_transform import ObjectTransform
from manylabel.data.source import SceneSource
from manylabel.data.stored_objects import ObjectReader
from manylabel.data.table import Table
from manylabel.detect import DETECTORS, Detections, DetectionTarget
from manylabel.error import ConfigError
from manylabel.metric import JudgedObjects
from manylabel.metric.detection import ImageFound, coco_average_precision
from manylabel.preprocess import Preprocess
from manylabel.registry import Registry
from manylabel.task.base import Targets, Task
from manylabel.task.boxed import with_boxed_images_only
from manylabel.task.kinds import register
from manylabel.task.stored_pixels import box_truth, in_stored_pixels, mask_truth

UNSURE = 0.5  # threshold where nothing that was found is right
MOVES = ("flip", "random_crop")  # changes to a training image that boxes and masks can follow
STILL = AugmentConfig()


@dataclass(frozen=True, eq=False)
class ObjectTargets(Targets):
    """What is in each image, in pixels of the input."""

    there: list[DetectionTarget]

    @property
    def objects(self) -> list[DetectionTarget]:
        return self.there


@dataclass(frozen=True, eq=False)
class Objects(Evidence):
    """What was found in each image, in pixels of the image as it is stored."""

    found: list[ImageFound]  # [n]

    @classmethod
    def joined(cls, parts: Sequence[Objects]) -> Objects:
        rows = np.concatenate([np.empty(0, np.int64), *(part.rows for part in parts)])
        found = [one for part in parts for one in part.found]
        order = np.argsort(rows, kind="stable")
        return Objects(rows[order], [found[i] for i in order])


@register
@dataclass(frozen=True)
class Detection(Task[ObjectTargets, Objects, JudgedObjects]):
    """Detection and instance segmentation: the losses are the detector's own, figures follow the COCO protocol."""

    kind: ClassVar[str] = "detection"
    measured_as: ClassVar[str] = "detection"
    defaults: ClassVar[KindDefaults] = KindDefaults(head="cascade")
    heads: ClassVar[Registry] = DETECTORS
    cached: ClassVar[bool] = False
    finds_objects: ClassVar[bool] = True
    loss_note: ClassVar[str] = "That of a detector rises while it learns: better proposals stand for more objects."
    with_masks: bool = True

    @classmethod
    def of(cls, config: TaskConfig, activation: Activation | None = None) -> Any:
        return cls(with_masks=bool(DETECTORS.options(config.head).masks))

    @classmethod
    def check(cls, config: TaskConfig, where: str) -> None:
        idle = [key for key, value in vars(config.augment).items() if key not in MOVES and value != getattr(STILL, key)]
        if idle:
            raise ConfigError(
                f"{where}augment.{idle[0]} is not for detection, which takes {' and '.join(MOVES)} (its scale)"
            )
        plain = TaskConfig()
        for name, why in (("loss", "a detector has its own losses"), ("text", "boxes are not found by words")):
            if getattr(config, name).name != getattr(plain, name).name:
                raise ConfigError(f"{where}{name} is not for detection: {why}; leave it out")
        if config.zero_shot.unseen:
            raise ConfigError(f"{where}zero_shot is not for detection, whose labels are all learned; leave it out")
        if config.neck.options.get("share") == "label":
            raise ConfigError(
                f"{where}neck.share=label mixes stages for each label, and a detector looks at one map; use neck.share=image"
            )

    def fitted_config(self, config: TaskConfig, table: Table, say: Callable[[str], None]) -> TaskConfig:
        """Masks that nobody drew cannot be learned: a detector that gave some all the same would make them up."""
        if not self.masks or _has_masks(table):
            return config
        say(f"{table.name} has boxes without masks; it learns boxes only")
        return replace(config, head=Part(config.head.name, {**config.head.options, "masks": False}))

    @property
    def masks(self) -> bool:
        return self.with_masks

    # --- data -------------------------------------------------------------------------------------------------------

    def usable(self, table: Table) -> Table:
        return with_boxed_images_only(table)

    def dataset(
        self, table: Table, preprocess: Preprocess, augment: AugmentConfig | None = None, seed: int = 0
    ) -> ObjectDataset:
        if augment is None:
            return ObjectDataset(table, ObjectTransform(preprocess))
        low = augment.random_crop or 1.0
        varied = ObjectTransform(preprocess, flip=augment.flip, scale=(low, 2 - low))
        return ObjectDataset(table, varied, seed, random=True)

    # --- learning ---------------------------------------------------------------------------------------------------

    def prepare(self, head: Any, config: TaskConfig, table: Table, rows: np.ndarray) -> None:
        """How many objects an image has; masks that belong elsewhere stop the run here."""
        stored = ObjectReader(table)
        if self.masks:
            stored.check_masks()
        head.expect(torch.from_numpy(stored.per_image(rows)))

    def targets(self, batch: Batch, device: torch.device, rng: np.random.Generator | None = None) -> ObjectTargets:
        assert isinstance(batch, ObjectBatch)
        return ObjectTargets(batch.inputs.to(device), [target.to(device) for target in batch.targets])

    def losses(self, output: Output, targets: ObjectTargets) -> dict[str, Tensor]:
        """The detector made them, of boxes that it drew from the targets."""
        return dict(output.losses)

    # --- judging and deciding ---------------------------------------------------------------------------------------

    def evidence(self, output: Output, batch: Batch) -> Objects:
        assert isinstance(batch, ObjectBatch)
        pairs = zip(output.detections, batch.places, strict=True)
        return Objects(batch.rows.numpy(), [in_stored_pixels(one, place, self.masks) for one, place in pairs])

    def judged(self, evidence: Objects, table: Table, never: np.ndarray | None = None) -> JudgedObjects:
        stored, found, boxed, drawn = ObjectReader(table), evidence.found, [], []
        for row in evidence.rows.tolist():  # one after another: the pixels of all masks at once would be gigabytes
            truth = stored.truth(row)
            boxed.append(box_truth(truth))
            if self.masks:
                drawn.append(mask_truth(truth))
        labels = len(table.labels)
        boxes = coco_average_precision(boxed, found, labels, "box")
        masks = coco_average_precision(drawn, found, labels, "mask") if self.masks else None
        return JudgedObjects(boxes, masks, boxed, found, table.labels.names)

    @classmethod
    def threshold_count(cls, labels: int) -> int:
        return 1

    def thresholds(self, judged: JudgedObjects) -> np.ndarray:
        """The lowest score of an object that is worth reporting, whatever its label is. [1]"""
        best = judged.boxes.best_score
        return np.array([UNSURE if best is None else best])

    def decide(self, found: Detections, thresholds: np.ndarray | Sequence[float]) -> Detections:
        """What is worth reporting of one image."""
        return found.part(found.scores >= thresholds[0])


def _has_masks(table: Table) -> bool:
    if isinstance(table.source, SceneSource):
        return True
    if table.objects is None:
        return False
    taught = np.isin(table.objects.row, table.rows("train"))
    return any(mask is not None for mask, told in zip(table.objects.masks, taught, strict=True) if told)
