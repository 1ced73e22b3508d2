"""The formats we write, by name."""

from __future__ import annotations

from manylabel.data.write import coco, csv, fiftyone, imagefolder, label_studio
from manylabel.data.write.target import Target

TARGETS: dict[str, Target] = {
    module.TARGET.name: module.TARGET for module in (csv, coco, label_studio, fiftyone, imagefolder)
}
