"""What an audit holds: the findings in the shape of the JSON that `manylabel data check --json` writes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from manylabel.storage.output import MADE_BY


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
    cooccurrence: dict[str, Any]
    similar_names: list[dict[str, Any]]
    sizes: dict[str, float]  # of the long side
    image_sizes: dict[str, Any]
    wrong_sizes: dict[str, Any]
    unreadable: dict[str, str]
    suspicious: dict[str, Any]
    duplicates: dict[str, Any]
    leaks: dict[str, Any]
    contradictions: dict[str, Any]
    unlisted: dict[str, Any]
    problems: list[str]
    warnings: list[str]

    @property
    def trainable(self) -> bool:
        return not self.problems

    def plain(self) -> dict[str, Any]:
        return {"schema": 1, "made_by": MADE_BY, "trainable": self.trainable, **asdict(self)}
