"""A sample of FiftyOne as we write it; `_cls` tells FiftyOne what a value is."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from manylabel.data.write.held import OtherStates


class WholeLabel(TypedDict):
    _cls: str
    label: str
    tags: list[str]


class WholeLabels(TypedDict):
    _cls: str
    classifications: list[WholeLabel]


class DetectionEntry(TypedDict):
    _cls: str
    label: str
    bounding_box: list[float]  # left, top, width, height as shares of the image
    tags: list[str]
    iscrowd: NotRequired[int]
    difficult: NotRequired[int]


class Detections(TypedDict):
    _cls: str
    detections: list[DetectionEntry]


class ImageMetadata(TypedDict):
    _cls: str
    width: int
    height: int


class SampleExtras(TypedDict, total=False):
    group: str
    metadata: ImageMetadata
    detections: Detections


class Sample(OtherStates, SampleExtras):
    filepath: str
    tags: list[str]
    ground_truth: WholeLabels
