"""What an audit holds: the findings in the shape of the JSON that `manylabel data check --json` writes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypedDict

from manylabel.data.audit.contradictions import Contradiction
from manylabel.data.audit.leaks import Leaks
from manylabel.data.audit.sizes import ImageSizes, Range
from manylabel.data.audit.suspicion import Suspect
from manylabel.data.audit.told_sizes import WrongSizes
from manylabel.data.audit.unlisted import Unlisted
from manylabel.storage.output import MADE_BY

# 'with' is a word of Python, so it cannot be written as a field
Implied = TypedDict("Implied", {"label": str, "with": str, "share": float, "support": int})


class Exclusive(TypedDict):
    label: str
    other: str
    expected: float


class Cooccurrence(TypedDict):
    """Lists are cut, counts are not."""

    images: int  # that were counted
    names: list[str]
    counts: list[list[int]]  # [names, names] images with both
    pairs: list[list[str | int]]  # two labels, images with both
    implied: list[Implied]
    implied_count: int
    identical: list[list[str]]
    identical_count: int
    exclusive: list[Exclusive]
    exclusive_count: int


class SimilarNames(TypedDict):
    labels: list[str]
    why: str
    support: list[int]
    together: int  # images with both


class Suspicious(TypedDict):
    kinds: dict[str, int]
    images: list[Suspect]


class CopyGroup(TypedDict):
    kind: str  # exact, near
    size: int
    images: list[str]
    splits: list[str]


class Copies(TypedDict):
    exact_copies: int
    near_copies: int
    group_count: int
    groups: list[CopyGroup]
    not_compared: int


class Contradictions(TypedDict):
    count: int
    exact: int
    near: int
    groups: list[Contradiction]


@dataclass(frozen=True)
class Audit:
    """The findings; `problems` keep a model from being trained, `warnings` do not. Lists are cut, counts are not."""

    name: str
    images: int
    splits: dict[str, int]
    labels: int
    labels_per_image: float
    labels_per_image_counts: dict[str, int]  # '3' → images with three labels
    images_without_labels: int
    unknown_share: float
    support: dict[str, int]  # the most frequent first
    support_by_split: dict[str, dict[str, int]]
    known_share: dict[str, float]  # per label; empty when everything is known
    too_rare_to_split: list[str]
    too_rare_to_judge: list[str]
    cooccurrence: Cooccurrence
    similar_names: list[SimilarNames]
    sizes: Range  # of the long side
    image_sizes: ImageSizes
    wrong_sizes: WrongSizes
    unreadable: dict[str, str]
    suspicious: Suspicious
    duplicates: Copies
    leaks: Leaks
    contradictions: Contradictions
    unlisted: Unlisted
    problems: list[str]
    warnings: list[str]

    @property
    def trainable(self) -> bool:
        return not self.problems

    def plain(self) -> dict[str, Any]:
        return {"schema": 1, "made_by": MADE_BY, "trainable": self.trainable, **asdict(self)}
