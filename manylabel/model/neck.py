"""A neck on the stages of a backbone."""

from __future__ import annotations

from manylabel.backbone import at_stride
from manylabel.backbone.stages import StageReader
from manylabel.config import Part
from manylabel.neck import NECKS, Neck


def build_neck(part: Part, reader: StageReader, num_labels: int) -> Neck:
    """Stages that are told by their stride have names then, as this backbone has them."""
    told = getattr(NECKS.options(part), "stages", None)
    if told is not None:
        named = [at_stride(stage, reader.strides, "neck.stages", reader.name) for stage in told]
        part = Part(part.name, {**part.options, "stages": named})
    neck: Neck = NECKS.build(part, channels=reader.channels, num_labels=num_labels)
    return neck
