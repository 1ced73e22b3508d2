"""What a bundle says beside its weights, as anybody may have written it: each value of its kind, or an error naming it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manylabel.core.decision import Activation
from manylabel.error import BundleError
from manylabel.labels import LabelSpace

MOST_LABELS = 100_000
ACTIVATIONS = ("sigmoid", "softmax")


def mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BundleError(f"{where} must be an object of keys and values, not {value!r:.40}")
    return value


def items(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise BundleError(f"{where} must be a list, not {value!r:.40}")
    return value


def text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise BundleError(f"{where} must be a text, not {value!r:.40}")
    return value


def texts(value: Any, where: str) -> tuple[str, ...]:
    return tuple(text(one, f"{where}[{i}]") for i, one in enumerate(items(value, where)))


def label_space(value: Any, where: str) -> LabelSpace:
    """One label or more, each a text of its own."""
    names = texts(value, where)
    if not 1 <= len(names) <= MOST_LABELS:
        raise BundleError(f"{where} has {len(names)} labels; a model has 1 to {MOST_LABELS}")
    return LabelSpace(names)


def threshold(value: Any, where: str) -> float:
    """A score from which on a label is given. None of ours is above 1, and it would silence its label without a word."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise BundleError(f"{where} must be a score, a number from 0 to 1, not {value!r:.40}")
    return float(value)


def counts(value: Any, labels: int, where: str) -> np.ndarray | None:
    """How many training images have each label [N]; None where a bundle does not tell."""
    if value is None:
        return None
    found = items(value, where)
    if len(found) != labels or not all(type(n) is int and 0 <= n < 2**63 for n in found):
        raise BundleError(f"{where} must be {labels} whole numbers, one for each label")
    return np.array(found, np.int64)


def thresholds(value: Any, count: int, where: str) -> tuple[float, ...]:
    found = tuple(threshold(one, f"{where}[{i}]") for i, one in enumerate(items(value, where)))
    if len(found) != count:
        raise BundleError(f"{where} has {len(found)} entries; there must be {count}")
    return found


def activation(value: Any, where: str) -> Activation | None:
    """None where a bundle of an earlier version does not tell."""
    if value is not None and value not in ACTIVATIONS:
        raise BundleError(f"{where} must be {' or '.join(ACTIVATIONS)}, not {value!r:.40}")
    told: Activation | None = value
    return told


def check_names(found: Sequence[str], wanted: Sequence[str], where: str) -> None:
    """Stop unless the tasks that a bundle describes are those of its settings."""
    if set(found) != set(wanted):
        odd = sorted(set(found) ^ set(wanted))[0]
        raise BundleError(f"{where}: task {odd!r:.60} is not in both, tasks.json and config.yaml")
