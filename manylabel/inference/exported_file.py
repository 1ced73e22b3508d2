"""A model as one file that runs without torch: what it says of itself, written by an export and read with care.

ONNX metadata `manylabel`: a JSON object
    made_by, format, versions   what wrote it
    bundle                      sha256 of the checksums.json of the bundle it came from; "" where it came from none
    precision                   in which it computes: f32, int8
    form                        plain: normalised pixels [B, 3, S, S] → logits; full: an image uint8 [H, W, 3] → all of it
    input                       the name of the input
    tasks: NAME: kind           multi_label (the labels that reach their thresholds) or single_label (the highest score)
                 head, backbone their names
                 outputs        logits, and of the full form pixels, scores and present: their names
                 labels         as labels.json of a bundle: names in the order of the logits, thresholds, parents, activation
                 preprocess     as preprocess.json of a bundle
    proof                       how it was compared with the bundle, and what came out
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manylabel.bundle import facts
from manylabel.bundle.task_facts import TaskFacts, facts_of
from manylabel.engine.onnx import OnnxEngine
from manylabel.engine.openvino import OpenVinoEngine
from manylabel.error import BundleError, ManylabelError
from manylabel.metric.label_kind import LABEL_KINDS
from manylabel.storage.json_text import parse_json

KEY, FORMAT = "manylabel", 1
FORMS = ("plain", "full")
OF_FULL = ("pixels", "scores", "present")


@dataclass(frozen=True)
class ExportedTask:
    """One task of an exported model: what a prediction must know, and the names of what is computed."""

    name: str
    facts: TaskFacts
    kind: str
    model: str  # head and backbone
    outputs: Mapping[str, str]

    @property
    def one_label(self) -> bool:
        return LABEL_KINDS[self.kind].one_label


@dataclass(frozen=True)
class ExportedFile:
    """A file that was opened, and is what it says."""

    path: Path
    form: str
    input: str
    tasks: Mapping[str, ExportedTask]
    told: Mapping[str, Any] = field(repr=False)  # all of its metadata
    engine: OnnxEngine | OpenVinoEngine = field(repr=False)


def open_exported(path: Path, threads: int = 0) -> ExportedFile:
    """An exported model from its file. `threads`: 0 = one for each core."""
    engine = OnnxEngine(path, threads)
    if KEY not in engine.metadata:
        raise BundleError(
            f"{path} was not exported by manylabel: it says nothing of labels and thresholds; "
            "export the run itself: manylabel export RUN --out FILE"
        )
    try:
        return _read(path, engine)
    except ManylabelError as error:
        again = "its metadata were changed, or another version wrote them; export it again"
        raise BundleError(f"{path}: {str(error).removeprefix(f'{path}, ')}: {again}") from error


def _read(path: Path, engine: OnnxEngine) -> ExportedFile:
    told = facts.mapping(parse_json(engine.metadata[KEY], "metadata", BundleError, advice=""), "metadata")
    if told.get("format") != FORMAT:
        raise BundleError(f"metadata, format is {told.get('format')!r:.40}, not {FORMAT}")
    form, name = told.get("form"), facts.text(told.get("input"), "metadata, input")
    if form not in FORMS:
        raise BundleError(f"metadata, form must be {' or '.join(FORMS)}, not {form!r:.40}")
    if engine.inputs != (name,):
        raise BundleError(f"metadata, input is {name!r:.60}, but the model takes {', '.join(engine.inputs)}")
    stored = facts.mapping(told.get("tasks"), "metadata, tasks")
    if not stored:
        raise BundleError("metadata, tasks: there is none")
    tasks = {key: _task(key, value, f"metadata, tasks.{key:.60}", form, engine) for key, value in stored.items()}
    for key, task in tasks.items():
        _check_input(engine.shapes[name], form, task.facts.preprocess.size, f"metadata, tasks.{key:.60}.preprocess")
    return ExportedFile(path, form, name, tasks, told, engine)


def _task(name: str, value: Any, where: str, form: str, engine: OnnxEngine) -> ExportedTask:
    told = facts.mapping(value, where)
    if told.get("kind") not in LABEL_KINDS:
        raise BundleError(f"{where}.kind must be {' or '.join(LABEL_KINDS)}, not {told.get('kind')!r:.40}")
    labels = facts.mapping(told.get("labels"), f"{where}.labels")
    preprocess = facts.mapping(told.get("preprocess"), f"{where}.preprocess")
    found = facts_of(labels, preprocess, lambda count: count, f"{where}.labels")
    if found.activation is None:
        raise BundleError(f"{where}.labels, activation must be {' or '.join(facts.ACTIVATIONS)}")
    given = facts.mapping(told.get("outputs"), f"{where}.outputs")
    outputs = {what: _output(given, what, engine, where) for what in ("logits", *(OF_FULL if form == "full" else ()))}
    count = engine.shapes[outputs["logits"]][-1]
    if count != len(found.labels):
        raise BundleError(f"{where}.labels has {len(found.labels)} labels, but the model gives {count} logits")
    model = " on ".join(facts.text(told.get(part), f"{where}.{part}") for part in ("head", "backbone"))
    return ExportedTask(name, found, told["kind"], model, outputs)


def _output(given: Mapping[str, Any], what: str, engine: OnnxEngine, where: str) -> str:
    name = facts.text(given.get(what), f"{where}.outputs.{what}")
    if name not in engine.names:
        raise BundleError(f"{where}.outputs.{what} is {name!r:.60}, but the model gives {', '.join(engine.names)}")
    return name


def _check_input(shape: list[Any], form: str, side: int, where: str) -> None:
    """Of the plain form the sides are fixed, of the full form the channels; the rest is free."""
    wanted = [None, 3, side, side] if form == "plain" else [None, None, 3]
    fits = len(shape) == len(wanted) and all(a == b for a, b in zip(shape, wanted, strict=True) if b is not None)
    if not fits:
        raise BundleError(f"{where} asks for pixels {wanted}, but the model takes {shape}")
