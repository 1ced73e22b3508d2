"""A run as one file that other programs run: written, compared with its bundle, and left behind only if it is equal."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from manylabel import console
from manylabel.bundle import Bundle, TaskBundle, find_bundle, load_bundle
from manylabel.bundle.files import CHECKSUMS
from manylabel.bundle.task_facts import labels_facts, preprocess_facts
from manylabel.engine.export import need_onnx, write_onnx
from manylabel.error import ConfigError, EngineError
from manylabel.exporting.full import WHAT, FullOutputs
from manylabel.exporting.metadata import versions, write_metadata
from manylabel.exporting.pictures import Pictures, pictures_of
from manylabel.exporting.plain import PlainOutputs, output_name
from manylabel.exporting.proof import LIMITS, Proof, prove
from manylabel.inference.exported import ExportedLabels
from manylabel.inference.exported_file import FORMAT, FORMS, open_exported
from manylabel.inference.labels import LabelPredictor
from manylabel.report.export_page import page_of, write_export_page
from manylabel.storage.atomic import sha256
from manylabel.storage.output import MADE_BY, check_output
from manylabel.storage.receipt import replacing_ours
from manylabel.suggest import closest

TARGETS = ("onnx",)
INPUTS = {"plain": "images", "full": "image"}
PICTURES = 200  # that a file is proved with
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

    `form`: plain takes normalised pixels, full an image as it was decoded. `task`: one of several; None = all, if they see
    the same pixels.
    """
    for name, value, known in (("--to", to, TARGETS), ("--form", form, FORMS)):
        if value not in known:
            raise ConfigError(f"{name} cannot be {value!r:.40}{closest(value, known)}")
    out = Path(out)
    check_output(out, overwrite)
    check_output(page_of(out), overwrite)
    need_onnx()
    folder = find_bundle(Path(run))
    bundle = load_bundle(folder)

    def held_out(name: str) -> Pictures:
        return pictures_of(bundle, name, folder.parent, PICTURES)

    return export_tasks(_chosen(bundle, task), out, form, sha256(folder / CHECKSUMS), held_out)


def export_tasks(
    tasks: Mapping[str, TaskBundle],
    out: Path,
    form: str = "plain",
    fingerprint: str = "",
    pictures: Callable[[str], Pictures] = lambda _: Pictures(),
) -> Exported:
    """The same of tasks in memory that see the same pixels; `pictures`: what the file is proved with, by task."""
    facts = _facts(tasks, form, fingerprint)
    with replacing_ours(out) as temporary:
        console.say(f"writing {out}")
        _write(tasks, form, temporary)
        write_metadata(temporary, facts)
        proofs = _proofs(tasks, form, temporary, pictures)
        facts["proof"] = {name: proof.told() for name, proof in proofs.items()}
        write_metadata(temporary, facts)
        open_exported(temporary)
    write_export_page(out, facts)
    return Exported(out, page_of(out), proofs)


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
    outputs: PlainOutputs | FullOutputs
    if form == "plain":
        outputs = PlainOutputs({name: one.model for name, one in tasks.items()})
        side = next(iter(tasks.values())).preprocess.size
        example = torch.zeros(2, 3, side, side)
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
        "form": form,
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


def _proofs(
    tasks: Mapping[str, TaskBundle], form: str, path: Path, pictures: Callable[[str], Pictures]
) -> dict[str, Proof]:
    file, found = open_exported(path, torch.get_num_threads()), {}
    for name, one in tasks.items():
        given = pictures(name)
        console.say(f"comparing it with the bundle on {given.source}")
        found[name] = prove(ExportedLabels(file, name), LabelPredictor(one), given, LIMITS[form, "f32"])
    return found
