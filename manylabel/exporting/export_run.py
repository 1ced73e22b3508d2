"""A run as one file that other programs run: written, compared with its bundle, and left behind only if it is equal."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from manylabel import console
from manylabel.bundle import Bundle, TaskBundle, find_bundle, load_bundle
from manylabel.bundle.files import CHECKSUMS
from manylabel.bundle.task_facts import labels_facts, preprocess_facts
from manylabel.engine.export import need_onnx, write_onnx
from manylabel.engine.outputs import Outputs
from manylabel.error import ConfigError, EngineError
from manylabel.exporting.full import WHAT, FullOutputs
from manylabel.exporting.int8 import CHOICES, quantise
from manylabel.exporting.metadata import versions, write_metadata
from manylabel.exporting.pictures import Pictures, pictures_of
from manylabel.exporting.plain import PlainOutputs, output_name
from manylabel.exporting.proof import LIMITS, Proof, prove
from manylabel.exporting.tagger import FILES, MODEL, TaggerOutputs, check_tagger, write_tags
from manylabel.inference.exported import ExportedLabels
from manylabel.inference.exported_file import FORMAT, FORMS, open_exported
from manylabel.inference.labels import LabelPredictor
from manylabel.report.export_page import page_of, write_export_page
from manylabel.storage.atomic import sha256
from manylabel.storage.output import MADE_BY, check_output, check_outputs
from manylabel.storage.receipt import replacing_ours
from manylabel.suggest import closest

TARGETS = ("onnx", "int8", "tagger")
INPUTS = {"plain": "images", "full": "image", "tagger": "input"}
PICTURES = {"onnx": 200, "int8": 500, "tagger": 200}  # at most, that a file is proved with
CALIBRATION = 128  # training images by which ranges are measured
EXAMPLE = (96, 128)  # sides of the picture that the full form is traced with


@dataclass(frozen=True)
class Exported:
    """What an export left behind."""

    file: Path
    page: Path
    proofs: Mapping[str, Proof]  # by task

    @property
    def faster(self) -> bool:
        return all(proof.faster for proof in self.proofs.values())


def export(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    to: str = "onnx",
    form: str = "plain",
    task: str | None = None,
    overwrite: bool = False,
) -> Exported:
    """The model of a run or a bundle folder as a file; a page beside it says how equal and how fast it is.

    `to`: onnx computes in float32; int8 in whole numbers where that is within its limits, and needs the images of the run.
    tagger writes the folder that taggers' front ends read.
    `form`: plain takes normalised pixels, full an image as it was decoded. `task`: one of several; None = all, if they see
    the same pixels.
    """
    for name, value, known in (("--to", to, TARGETS), ("--form", form, FORMS)):
        if value not in known:
            raise ConfigError(f"{name} cannot be {value!r:.40}{closest(value, known)}")
    if to != "onnx" and form != "plain":
        raise ConfigError(f"--to {to} has the plain form only; leave --form {form} out")
    out = Path(out)
    if to == "tagger":
        check_outputs(out, FILES, overwrite)
        out = out / MODEL
    check_output(out, overwrite)
    check_output(page_of(out), overwrite)
    need_onnx()
    folder = find_bundle(Path(run))
    bundle = load_bundle(folder)

    def shown(name: str) -> Pictures:
        return pictures_of(bundle, name, folder.parent, PICTURES[to])

    def calibration(name: str) -> Pictures:
        return pictures_of(bundle, name, folder.parent, CALIBRATION, "train")

    tasks, fingerprint = _chosen(bundle, task), sha256(folder / CHECKSUMS)
    if to != "tagger":
        return export_tasks(tasks, out, form, fingerprint, shown, calibration if to == "int8" else None)
    return _tagger(check_tagger(tasks), out, fingerprint, shown)


def _tagger(one: TaskBundle, out: Path, fingerprint: str, shown: Callable[[str], Pictures]) -> Exported:
    found = export_tasks({one.name: one}, out, "tagger", fingerprint, shown)
    write_tags(out.parent, one)
    return found


def export_tasks(
    tasks: Mapping[str, TaskBundle],
    out: Path,
    form: str = "plain",
    fingerprint: str = "",
    shown: Callable[[str], Pictures] = lambda _: Pictures(),
    calibration: Callable[[str], Pictures] | None = None,
) -> Exported:
    """The same of tasks in memory that see the same pixels. `shown`: what the file is proved with, by task;
    `calibration`: in int8, with ranges measured on these."""
    facts = _facts(tasks, form, fingerprint)
    with replacing_ours(out) as temporary:
        console.say(f"writing {out}")
        _write(tasks, form, temporary)
        pictures = {name: shown(name) for name in tasks}
        if calibration is None:
            write_metadata(temporary, facts)
            proofs = _proofs(tasks, temporary, pictures)
        else:
            proofs = _in_int8(tasks, temporary, facts, pictures, calibration(next(iter(tasks))))
        facts["proof"] = {name: proof.told() for name, proof in proofs.items()}
        write_metadata(temporary, facts)
        open_exported(temporary)
    write_export_page(out, facts)
    return Exported(out, page_of(out), proofs)


def _in_int8(
    tasks: Mapping[str, TaskBundle],
    path: Path,
    facts: dict[str, Any],
    pictures: Mapping[str, Pictures],
    calibration: Pictures,
) -> dict[str, Proof]:
    """Of the choices within the limits the fastest, in place of the file."""
    if calibration.matrix is None:
        raise ConfigError(
            f"--to int8 measures ranges on training images of the run; there are only {calibration.source}"
        )
    write_metadata(path, facts)
    in_float = _proofs(tasks, path, pictures)
    facts |= {"precision": "int8", "calibrated_on": calibration.source}
    facts["float_images_per_second"] = min(proof.file_images_per_second for proof in in_float.values())
    batches = _normalised(path, next(iter(tasks)), calibration)
    refused, best = [], None
    with tempfile.TemporaryDirectory() as folder:
        for number, (choice, operators) in enumerate(CHOICES.items()):
            tried = Path(folder) / f"{number}.onnx"
            console.say(f"trying {choice} in int8")
            try:
                quantise(path, tried, batches, operators)
                write_metadata(tried, facts)
                proofs = _proofs(tasks, tried, pictures)
            except EngineError as error:
                refused.append(f"{choice}: {error}")
                continue
            speed = min(proof.file_images_per_second for proof in proofs.values())
            if best is None or speed > best[0]:
                best = speed, tried, proofs, choice
        if best is None:
            raise EngineError(f"nothing of this model can be computed in int8: {'; '.join(refused)}")
        shutil.copyfile(best[1], path)
    facts["in_int8"] = best[3]
    if best[0] <= facts["float_images_per_second"]:
        console.warn(
            f"in int8 it is not faster than in float32 on this machine ({best[0]:g} against "
            f"{facts['float_images_per_second']:g} images/s): --to onnx is the better file here"
        )
    return best[2]


def _normalised(path: Path, task: str, pictures: Pictures) -> list[np.ndarray]:
    """[1, 3, S, S] of each."""
    file = ExportedLabels(open_exported(path), task)
    return [file.normalised([file.prepared(picture)]) for picture in pictures.given]


def _chosen(bundle: Bundle, task: str | None) -> dict[str, TaskBundle]:
    """The tasks that go into the file."""
    tasks = dict(bundle.tasks) if task is None else {task: bundle.task(task)}
    for name, one in tasks.items():
        if one.task.finds_objects:
            labels = [n for n, other in bundle.tasks.items() if not other.task.finds_objects]
            instead = f"; choose one with labels: --task {labels[0]}" if labels else ""
            raise ConfigError(f"task {name} finds objects, which cannot be exported yet{instead}")
    if len({one.preprocess for one in tasks.values()}) > 1:
        raise ConfigError(
            f"tasks {', '.join(tasks)} see images prepared in different ways; export each into a file of its own with --task"
        )
    return tasks


def _write(tasks: Mapping[str, TaskBundle], form: str, path: Path) -> None:
    first = next(iter(tasks.values()))
    example = torch.zeros(2, 3, *[first.preprocess.size] * 2)
    outputs: Outputs
    if form == "plain":
        outputs = PlainOutputs({name: one.model for name, one in tasks.items()})
    elif form == "tagger":
        outputs = TaggerOutputs(first)
    else:
        outputs, example = FullOutputs(tasks), torch.zeros(*EXAMPLE, 3, dtype=torch.uint8)
    try:
        write_onnx(outputs, {INPUTS[form]: example}, path)
    except Exception as error:  # the exporter raises whatever it likes
        brief = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise EngineError(f"this model cannot be written as ONNX ({brief})") from error


def _facts(tasks: Mapping[str, TaskBundle], form: str, fingerprint: str) -> dict[str, Any]:
    """The metadata; see manylabel.inference.exported_file."""
    what = WHAT if form == "full" else ("logits",)
    return {
        "made_by": MADE_BY,
        "format": FORMAT,
        "versions": versions(),
        "bundle": fingerprint,
        "precision": "f32",
        "form": "full" if form == "full" else "plain",
        "input": INPUTS[form],
        "tasks": {
            name: {
                "kind": one.task.kind,
                "head": one.config.head.name,
                "backbone": one.run.backbone.name,
                "outputs": {each: output_name(each, name, len(tasks) == 1) for each in what},
                "labels": labels_facts(one),
                "preprocess": preprocess_facts(one),
            }
            for name, one in tasks.items()
        },
    }


def _proofs(tasks: Mapping[str, TaskBundle], path: Path, pictures: Mapping[str, Pictures]) -> dict[str, Proof]:
    file, found = open_exported(path, torch.get_num_threads()), {}
    for name, one in tasks.items():
        console.say(f"comparing it with the bundle on {pictures[name].source}")
        limits = LIMITS[file.form, file.told["precision"]]
        found[name] = prove(ExportedLabels(file, name), LabelPredictor(one), pictures[name], limits)
    return found
