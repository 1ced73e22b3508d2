"""What a bundle says of a task beside its weights: labels.json and preprocess.json, written and read.

Those of a model with one task lie beside its weights, those of several in tasks/NAME/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manylabel.bundle import facts
from manylabel.config import parse
from manylabel.core.decision import Activation
from manylabel.error import BundleError
from manylabel.hierarchy import Hierarchy, LabelFacts
from manylabel.labels import LabelSpace
from manylabel.preprocess import Preprocess
from manylabel.storage.json_text import read_object
from manylabel.storage.plain_file import MB

if TYPE_CHECKING:
    from manylabel.bundle.bundle import TaskBundle

FORMAT = 1
LABELS_FILE, PREPROCESS_FILE = "labels.json", "preprocess.json"
LARGEST = 64 * MB


@dataclass(frozen=True)
class TaskFacts:
    """Read, and checked."""

    labels: LabelSpace
    thresholds: np.ndarray
    preprocess: Preprocess
    fitted_on: str = ""
    hierarchy: Hierarchy | None = None
    text_source: str = ""
    activation: Activation | None = None
    training_images: np.ndarray | None = None


def labels_facts(bundle: TaskBundle) -> dict[str, Any]:
    """For labels.json."""
    own = len(bundle.thresholds) == len(bundle.labels)
    entries = [{"name": name, **_facts(bundle.hierarchy, name)} for name in bundle.labels]
    for entry, value in zip(entries, bundle.thresholds.tolist(), strict=True) if own else ():
        entry["threshold"] = value
    return {
        "format": FORMAT,
        "activation": bundle.task.activation,  # a loss that somebody registered is not there when others load this
        "labels": entries,
        **({} if own else {"thresholds": bundle.thresholds.tolist()}),
        **({} if bundle.training_images is None else {"training_images": bundle.training_images.tolist()}),
        "thresholds_fitted_on": bundle.fitted_on,
        "text_source": bundle.text_source,
    }


def read_facts(folder: Path, threshold_count: Callable[[int], int]) -> TaskFacts:
    """Of the task whose files are in this folder; `threshold_count` says how many thresholds so many labels have."""
    preprocess, where = _object(folder / PREPROCESS_FILE), folder / LABELS_FILE
    return facts_of(_object(where), preprocess, threshold_count, str(where))


def facts_of(
    told: Mapping[str, Any], preprocess: Mapping[str, Any], threshold_count: Callable[[int], int], where: str
) -> TaskFacts:
    """The same of the two objects that the files hold; `where` stands before what is wrong with the labels."""
    prepared = parse(Preprocess, preprocess, "preprocess")
    if told.get("format", FORMAT) != FORMAT:
        raise BundleError("it was made by another one; train it again")
    entries = [
        facts.mapping(entry, f"{where}, labels[{i}]")
        for i, entry in enumerate(facts.items(told.get("labels"), f"{where}, labels"))
    ]
    labels = facts.label_space([entry.get("name") for entry in entries], f"{where}, names of labels")
    count = threshold_count(len(labels))
    if "thresholds" in told:
        thresholds = list(facts.thresholds(told["thresholds"], count, f"{where}, thresholds"))
    else:
        thresholds = [
            facts.threshold(e.get("threshold"), f"{where}, labels[{i}].threshold") for i, e in enumerate(entries)
        ]
    return TaskFacts(
        labels,
        np.array(thresholds),
        prepared,
        facts.text(told.get("thresholds_fitted_on", ""), f"{where}, thresholds_fitted_on"),
        _hierarchy(entries, where),
        facts.text(told.get("text_source", ""), f"{where}, text_source"),
        facts.activation(told.get("activation"), f"{where}, activation"),
        facts.counts(told.get("training_images"), len(labels), f"{where}, training_images"),
    )


def preprocess_facts(bundle: TaskBundle) -> dict[str, Any]:
    """For preprocess.json."""
    return asdict(bundle.preprocess)


def _facts(hierarchy: Hierarchy | None, name: str) -> dict[str, Any]:
    """What the hierarchy says of a label, as far as it says anything."""
    return {} if hierarchy is None else {key: value for key, value in asdict(hierarchy.facts[name]).items() if value}


def _hierarchy(entries: list[Mapping[str, Any]], where: str) -> Hierarchy | None:
    kinds = ("parents", "synonyms", "description")
    if not any(kind in entry for entry in entries for kind in kinds):
        return None
    return Hierarchy(
        {
            str(entry["name"]): LabelFacts(
                facts.texts(entry.get("parents", []), f"{where}, labels[{i}].parents"),
                facts.texts(entry.get("synonyms", []), f"{where}, labels[{i}].synonyms"),
                facts.text(entry.get("description", ""), f"{where}, labels[{i}].description"),
            )
            for i, entry in enumerate(entries)
        },
        where,
    )


def _object(path: Path) -> dict[str, Any]:
    return read_object(path, BundleError, most=LARGEST)
