"""The folder that taggers' front ends read (dghs-imgutils and what builds on it): a model, its tags, its pixels.

model.onnx          input [B, 3, S, S] → prediction (scores), logits, embedding; it is a plain form of ours as well
selected_tags.csv   name, category, best_threshold of each tag, in the order of the model
categories.json     category, name: what a tag is a kind of, at the top of the hierarchy
preprocess.json     test and val: the steps from a picture to the input
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manylabel.bundle import TaskBundle
from manylabel.engine.outputs import Outputs, on
from manylabel.error import ConfigError
from manylabel.hierarchy import Hierarchy
from manylabel.preprocess import Preprocess
from manylabel.spreadsheet import refuse_cell
from manylabel.storage.json_text import to_json
from manylabel.storage.receipt import write_ours

MODEL, TAGS, CATEGORIES, PREPROCESS = "model.onnx", "selected_tags.csv", "categories.json", "preprocess.json"
FILES = (MODEL, TAGS, CATEGORIES, PREPROCESS)
GENERAL = "general"  # of tags that are a kind of nothing


class TaggerOutputs(Outputs):
    what = "predictions"
    names = ("prediction", "logits", "embedding")

    def __init__(self, bundle: TaskBundle) -> None:
        super().__init__()
        self.path = on(bundle.model, bundle.model.backbone.of_normalised())

    def forward(self, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
        (pixels,) = inputs.values()
        features = self.path.backbone(pixels, task=self.path.name)
        logits = self.path.answer(features).logits
        return torch.sigmoid(logits), logits, features.final.mean(dim=(2, 3))


def check_tagger(tasks: Mapping[str, TaskBundle]) -> TaskBundle:
    """The one task, if front ends can do with it what its bundle does."""
    if len(tasks) > 1:
        raise ConfigError(f"a tagger has one task; choose one with --task: {', '.join(tasks)}")
    (one,) = tasks.values()
    if one.task.one_label or one.task.activation != "sigmoid":
        raise ConfigError("a tagger gives every tag that reaches its threshold; this model gives one label per image")
    if one.preprocess.resize != "stretch":
        raise ConfigError(
            f"taggers cannot prepare pixels as backbone.resize={one.preprocess.resize} does; --to onnx can"
        )
    for name in one.labels:
        refuse_cell(name, TAGS, "label")
    return one


def write_tags(folder: Path, one: TaskBundle) -> None:
    """What stands beside the model."""
    of = {name: category_of(name, one.hierarchy) for name in one.labels}
    numbers = {name: number for number, name in enumerate(sorted(set(of.values()), key=lambda n: (n != GENERAL, n)))}
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("name", "category", "best_threshold"))
    rows.writerows(
        (name, numbers[of[name]], repr(float(t))) for name, t in zip(one.labels, one.thresholds, strict=True)
    )
    write_ours(folder / TAGS, text.getvalue())
    write_ours(folder / CATEGORIES, to_json([{"category": number, "name": name} for name, number in numbers.items()]))
    write_ours(folder / PREPROCESS, to_json(dict.fromkeys(("test", "val"), steps(one.preprocess))))


def category_of(name: str, hierarchy: Hierarchy | None) -> str:
    """The top of what it is a kind of; a top itself is of its own."""
    if hierarchy is None:
        return GENERAL
    top = name
    while parents := hierarchy.parents(top):
        top = parents[0]
    alone = top == name and not any(name in hierarchy.parents(other) for other in hierarchy.names)
    return GENERAL if alone else top


def steps(preprocess: Preprocess) -> list[dict[str, Any]]:
    """From an RGB picture to the input, as torchvision's transforms are called."""
    return [
        {"type": "resize", "size": [preprocess.size] * 2, "interpolation": preprocess.interpolation, "antialias": True},
        {"type": "to_tensor"},
        {"type": "normalize", "mean": list(preprocess.mean), "std": list(preprocess.std)},
    ]
