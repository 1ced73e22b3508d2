"""What details.json holds of hard instances: labels that are missed in images whose other labels are found."""

from __future__ import annotations

from typing import TypedDict


class PairCounts(TypedDict):
    """A pair is an image and a label that is in it."""

    pairs: int
    hard_pairs: int
    images: int
    images_with_several: int
    hard_images: int


class HardLabel(TypedDict):
    name: str
    support: int
    low: int
    hard: int
    share: float  # of the support that is hard


class SizeShare(TypedDict):
    """Pairs whose object has one size."""

    name: str
    area: str  # in words
    pairs: int
    hard: int
    share: float | None


class Instance(TypedDict):
    """A label that is in an image."""

    label: str
    score: float
    cost: float | None  # share of the images without it that score as high
    state: str  # hard, missed, found, easy


class HardImage(TypedDict):
    file: str
    labels: list[Instance]


class HardExample(HardImage):
    thumbnail: str | None


class HardSection(PairCounts):
    definition: str
    hard_cost: float
    easy_cost: float
    labels: list[HardLabel]
    sizes: list[SizeShare] | None  # None where the data has no boxes
    examples: list[HardExample]


class HardDetails(TypedDict, total=False):
    """The entry of details.json, where there is one."""

    hard: HardSection
