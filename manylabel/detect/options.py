"""Settings of a detector."""

from __future__ import annotations

from dataclasses import dataclass

from manylabel.config import option
from manylabel.require import require


@dataclass(frozen=True)
class DetectorOptions:
    """From ViTDet and Cascade Mask R-CNN; a small model takes fewer levels, narrower heads and fewer proposals."""

    width: int = option(256, "channels of every level of the pyramid")
    levels: tuple[float, ...] = option(
        (4, 2, 1, 0.5), "levels of the pyramid as multiples of the backbone's map, finest first; each is half the last"
    )
    stages: int = option(3, "box heads one after another, each for better boxes; 1 = plain Faster or Mask R-CNN")
    masks: bool = option(True, "segment every object as well; off = boxes alone")
    anchors: tuple[float, ...] = option(
        (),
        "side of the anchors of each level in pixels; empty = half of the image at the coarsest level, then half of that …",
    )
    ratios: tuple[float, ...] = option((0.5, 1, 2), "height : width of the anchors")
    proposals: int = option(1000, "proposals of an image in training")
    test_proposals: int = option(1000, "proposals of an image when it is judged")
    proposal_nms: float = option(0.7, "overlap above which the weaker of two proposals is dropped")
    anchor_samples: int = option(256, "anchors of an image that the proposals learn from")
    box_samples: int = option(512, "boxes of an image that the box heads learn from, a quarter of them on objects")
    box_hidden: int = option(1024, "width of the two layers of a box head")
    mask_width: int = option(256, "channels of the mask head")
    mask_layers: int = option(4, "convolutions of the mask head")
    score: float = option(0.01, "lowest score of an object that is reported")
    nms: float = option(0.5, "overlap above which the weaker of two boxes of one label is dropped")
    most: int = option(100, "most objects reported of an image")

    def __post_init__(self) -> None:
        for name in ("width", "box_hidden", "mask_width", "proposals", "test_proposals", "most"):
            require(getattr(self, name) >= 1, f"head.{name}", getattr(self, name), "1 or more")
        for name in ("anchor_samples", "box_samples"):
            require(getattr(self, name) >= 4, f"head.{name}", getattr(self, name), "4 or more")
        require(self.mask_layers >= 0, "head.mask_layers", self.mask_layers, "0 or more")
        require(1 <= self.stages <= 3, "head.stages", self.stages, "1 to 3")
        known = all(level in (4, 2, 1, 0.5, 0.25) for level in self.levels)
        halved = all(fine == 2 * coarse for fine, coarse in zip(self.levels, self.levels[1:], strict=False))
        require(
            len(self.levels) > 0 and known and halved,
            "head.levels",
            self.levels,
            "a part of 4, 2, 1, 0.5, 0.25 without gaps",
        )
        require(
            len(self.anchors) in (0, len(self.levels)) and all(side > 0 for side in self.anchors),
            "head.anchors",
            self.anchors,
            f"empty, or {len(self.levels)} sides above 0, one for each level",
        )
        require(len(self.ratios) > 0 and all(r > 0 for r in self.ratios), "head.ratios", self.ratios, "numbers above 0")
        for name in ("proposal_nms", "nms"):
            require(0 < getattr(self, name) <= 1, f"head.{name}", getattr(self, name), "above 0 and at most 1")
        require(0 <= self.score < 1, "head.score", self.score, "at least 0 and below 1")
