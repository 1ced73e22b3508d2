"""The entries of a COCO file as we write them; what is NotRequired is left out where there is nothing to say."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class ImageEntry(TypedDict):
    id: int
    file_name: str
    width: NotRequired[int]
    height: NotRequired[int]
    neg_category_ids: NotRequired[list[int]]
    not_exhaustive_category_ids: NotRequired[list[int]]
    split: NotRequired[str]
    group: NotRequired[str]


class RunLengthText(TypedDict):
    size: list[int]  # height, width
    counts: str


Segmentation = list[list[float]] | RunLengthText


class AnnotationEntry(TypedDict):
    """Without a box it is a label of the whole image."""

    id: int
    image_id: int
    category_id: int
    iscrowd: int
    bbox: NotRequired[list[float]]  # left, top, width, height
    area: NotRequired[float]
    ignore: NotRequired[int]
    segmentation: NotRequired[Segmentation]


class CategoryEntry(TypedDict):
    id: int
    name: str
    supercategory: str
