"""Bundles of several tasks as version 0.1.0 first wrote them: all tasks in tasks.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.bundle import facts
from manylabel.bundle.task_facts import LARGEST, TaskFacts
from manylabel.config import Config
from manylabel.error import BundleError
from manylabel.preprocess import Preprocess
from manylabel.storage.json_text import read_object
from manylabel.task import kind_of

TASKS_FILE = "tasks.json"
FILES = ("weights.safetensors", TASKS_FILE, "config.yaml", "README.md")
FORMAT = 2  # of that file: normalised box heads
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet


def read_tasks(folder: Path, config: Config, weights: Mapping[str, Any]) -> dict[str, TaskFacts]:
    where = folder / TASKS_FILE
    told = read_object(where, BundleError, most=LARGEST)
    if told.get("format") != FORMAT:
        raise BundleError("it was made by another one; train it again")
    stored = facts.mapping(told.get("tasks"), f"{where}, tasks")
    facts.check_names(list(stored), list(config.tasks), str(where))
    mean, std = (_three(weights, name, usual) for name, usual in (("mean", MEAN), ("std", STD)))
    return {name: _facts(config, name, one, f"{where}, tasks.{name}", mean, std) for name, one in stored.items()}


def _three(weights: Mapping[str, Any], name: str, usual: tuple[float, ...]) -> tuple[float, ...]:
    """Normalisation was among the weights."""
    return tuple(weights[name].flatten().tolist()) if name in weights else usual


def _facts(
    config: Config, name: str, value: Any, where: str, mean: tuple[float, ...], std: tuple[float, ...]
) -> TaskFacts:
    told, task = facts.mapping(value, where), config.tasks[name]
    labels = facts.label_space(told.get("labels"), f"{where}.labels")
    count = kind_of(task).threshold_count(len(labels))
    if len(std) != 3 or min(std) <= 0:
        raise BundleError("weights.safetensors, std: every one must be above 0")
    return TaskFacts(
        labels,
        np.array(facts.thresholds(told.get("thresholds"), count, f"{where}.thresholds")),
        Preprocess(task.image_size or 224, mean, std, "bicubic"),  # type: ignore[arg-type]
        activation=facts.activation(told.get("activation"), f"{where}.activation"),
        training_images=facts.counts(told.get("training_images"), len(labels), f"{where}.training_images"),
    )
