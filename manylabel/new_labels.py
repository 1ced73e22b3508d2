"""Other labels for a zero-shot model: the same weights, asked about words that were never trained."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from manylabel import console
from manylabel.bundle import TaskBundle
from manylabel.config import Part
from manylabel.error import BundleError, ConfigError, DataError
from manylabel.head.seats import apart
from manylabel.head.words import one_length
from manylabel.labels import LabelSpace
from manylabel.model import TaskModel
from manylabel.text import EMBEDDERS, Embedder


def with_new_labels(
    bundle: TaskBundle, labels: Sequence[str], *, vectors: np.ndarray | None = None, text_file: str | None = None
) -> TaskBundle:
    """The bundle for these labels. Their vectors come from where the trained labels' came from, unless they are given.

    A label that the model knows keeps its own threshold; the others take the median of the known ones.
    """
    if not getattr(bundle.model.head, "zero_shot", False):
        raise BundleError(
            f"this model ({bundle.config.head.name}) knows its own {len(bundle.labels)} labels only; labels that were never "
            "trained need a zero-shot one: manylabel train … --recipe ml-decoder-zero-shot"
        )
    space = LabelSpace(tuple(labels))
    if not len(space):
        raise DataError("no label was named")
    if vectors is None:
        vectors = _embedded(bundle, space, text_file)
    if len(vectors) != len(space):
        raise ConfigError(f"there are {len(vectors)} vectors for {len(space)} labels")
    model = _with_own_head(bundle.model)
    model.head.relabel(np.asarray(vectors, np.float32))
    usual = float(np.median(bundle.thresholds))
    thresholds = [bundle.thresholds[bundle.labels.index(name)] if name in bundle.labels else usual for name in space]
    return replace(bundle, model=model, labels=space, thresholds=np.array(thresholds), hierarchy=None, fitted_on="")


def _with_own_head(model: TaskModel) -> TaskModel:
    """The same model with a copy of its head; the backbone, which is large, stays one."""
    other = copy.copy(model)
    other._modules = {**model._modules, "head": copy.deepcopy(model.head)}
    return other


def _embedded(bundle: TaskBundle, labels: LabelSpace, text_file: str | None) -> np.ndarray:
    part = bundle.config.text
    if text_file is not None:
        name = part.name if "path" in part.options else "given" if text_file.endswith(".npy") else "file"
        part = Part(name, {**(part.options if name == part.name else {}), "path": text_file})
        if name == "given":
            part = Part(name, {"path": text_file})
    elif "path" in part.options and not Path(part.options["path"]).is_file():
        raise BundleError(
            f"this model knows words by {bundle.text_source}; say where that file is: --vectors …/{part.options['path']}"
        )
    embedder: Embedder = EMBEDDERS.build(part)
    _compare(bundle, embedder)
    vectors = embedder.embed(labels.names)
    for note in embedder.notes:
        console.warn(note)
    return vectors


def _compare(bundle: TaskBundle, embedder: Embedder) -> None:
    """Stop when this embedder gives other vectors than the model was trained with: its answers would mean nothing."""
    stored = bundle.vectors
    if stored is None:
        return
    names = bundle.labels.names[:20]
    again = embedder.embed(names)
    if again.shape[1] != stored.shape[1]:
        raise BundleError(
            f"{embedder.source} gives vectors of {again.shape[1]} numbers, this model was trained with {stored.shape[1]} "
            f"({bundle.text_source})"
        )
    other = apart(one_length(torch.as_tensor(again)).numpy(), stored[: len(names)])
    if other.any():
        raise BundleError(
            f"{embedder.source} says something else about {names[int(other.argmax())]!r} than the vectors this model was "
            f"trained with ({bundle.text_source})"
        )
