"""What leaves a run: a folder with everything a prediction needs, and nothing that runs code when it is opened.

weights.safetensors   backbone, neck and head
labels.json           names in the order of the logits, with their thresholds, parents, synonyms and descriptions
preprocess.json       how an image becomes the network's input
config.yaml           the resolved settings of the run
README.md             model card: what it is, how good, on what
checksums.json        sha256 of each of the above
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from manylabel.atomic import sha256, sweep, write_json, write_text
from manylabel.config import Config, dump, load_yaml, parse
from manylabel.error import BundleError, ManylabelError
from manylabel.head import HEADS
from manylabel.hierarchy import Hierarchy, LabelFacts
from manylabel.labels import LabelSpace
from manylabel.model import Model
from manylabel.preprocess import Preprocess
from manylabel.task import Task
from manylabel.training.checkpoint import Checkpoint, load_tensors, save_tensors, without_prefix

FORMAT = 1
FILES = ("weights.safetensors", "labels.json", "preprocess.json", "config.yaml", "README.md")
CHECKSUMS = "checksums.json"


@dataclass(frozen=True)
class Bundle:
    """A model that is ready to be used, with what belongs to it."""

    model: Model
    config: Config
    labels: LabelSpace
    thresholds: np.ndarray  # [N]
    preprocess: Preprocess
    fitted_on: str = ""  # fingerprint of the images the thresholds were fitted on
    hierarchy: Hierarchy | None = None  # what is known about the labels beside their names
    text_source: str = ""  # where the text vectors of the labels come from, if the head has any

    @property
    def task(self) -> Task:
        return Task.of(self.config)

    @property
    def vectors(self) -> np.ndarray | None:
        """The labels' text vectors [N, d], if the head works with them."""
        return self.model.head.vectors

    @property
    def unseen(self) -> np.ndarray | None:
        """[N] bool: labels that training never told; None where it told them all."""
        return self.model.head.unseen


def find_bundle(path: Path) -> Path:
    """The bundle folder itself, or that of a run."""
    for candidate in (path, path / "bundle"):
        if (candidate / CHECKSUMS).is_file():
            return candidate
    if not path.exists():
        raise BundleError(f"{path} does not exist")
    unfinished = (path / "config.yaml").is_file()
    hint = f"; finish the run first: manylabel train --resume --out {path}" if unfinished else ""
    raise BundleError(f"{path} holds no bundle (no {CHECKSUMS}){hint}")


def save_bundle(folder: Path, bundle: Bundle, results: dict[str, Any]) -> Path:
    """Write a bundle; the checksums come last, so a half-written one is never taken for whole."""
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    (folder / CHECKSUMS).unlink(missing_ok=True)
    save_tensors(folder / "weights.safetensors", Checkpoint(bundle.model.state_dict(), {}))
    pairs = zip(bundle.labels, bundle.thresholds.tolist(), strict=True)
    labels = {
        "format": FORMAT,
        "labels": [{"name": name, "threshold": value, **_facts(bundle.hierarchy, name)} for name, value in pairs],
        "thresholds_fitted_on": bundle.fitted_on,
        "text_source": bundle.text_source,
    }
    write_json(folder / "labels.json", labels)
    write_json(folder / "preprocess.json", asdict(bundle.preprocess))
    write_text(folder / "config.yaml", dump(bundle.config))
    write_text(folder / "README.md", model_card(bundle, results))
    write_json(folder / CHECKSUMS, {"format": FORMAT, "sha256": {name: sha256(folder / name) for name in FILES}})
    return folder


def check_sums(folder: Path, files: Sequence[str]) -> None:
    """Stop unless these files, and no others, are there as they were written."""
    sums = _json(folder / CHECKSUMS).get("sha256")
    if not isinstance(sums, dict) or set(sums) != set(files):
        raise BundleError(f"{folder / CHECKSUMS} does not list the files of a bundle ({', '.join(files)})")
    for name in files:
        file = folder / name
        if not file.is_file() or file.is_symlink():
            raise BundleError(f"{file} is missing, or is not a plain file")
        if sha256(file) != sums[name]:
            raise BundleError(f"{file} has another checksum than when it was written; get the bundle again")


def load_bundle(path: Path | str) -> Bundle:
    """A bundle from its folder (or its run's), after its checksums have been compared."""
    folder = find_bundle(Path(path))
    if (folder / "tasks.json").is_file():
        raise BundleError(
            f"{folder} is a model for several tasks: manylabel predict and evaluate take it, with --task NAME; in "
            "Python, manylabel.TaskPredictor does"
        )
    check_sums(folder, FILES)
    try:
        config = parse(Config, load_yaml(folder / "config.yaml"))
        entries = _json(folder / "labels.json")
        labels = LabelSpace(tuple(str(entry["name"]) for entry in entries["labels"]))
        thresholds = np.array([float(entry["threshold"]) for entry in entries["labels"]])
        hierarchy = _hierarchy(entries["labels"])
        facts = _json(folder / "preprocess.json")
        preprocess = parse(Preprocess, facts, "preprocess")
        # the size that was used, not the wish for a larger one, which these weights may not have taken
        config = replace(config, backbone=replace(config.backbone, image_size=preprocess.size, enlarge=1.0))
        state = load_tensors(folder / "weights.safetensors").tensors
        stored = HEADS.get(config.head.name).knowledge_of(without_prefix("head", state), len(labels))
        model = Model(config, len(labels), load_weights=False, knowledge=stored)
        model.load_state_dict(state)
        model.backbone.use(preprocess)
    except (KeyError, TypeError, ValueError, RuntimeError, ManylabelError) as error:
        raise BundleError(f"{folder} is not a bundle of this version of manylabel: {error}") from error
    fitted_on = str(entries.get("thresholds_fitted_on", ""))
    text_source = str(entries.get("text_source", ""))
    return Bundle(model.eval(), config, labels, thresholds, preprocess, fitted_on, hierarchy, text_source)


def _facts(hierarchy: Hierarchy | None, name: str) -> dict[str, Any]:
    """What the hierarchy says of a label, as far as it says anything."""
    return {} if hierarchy is None else {key: value for key, value in asdict(hierarchy.facts[name]).items() if value}


def _hierarchy(entries: list[dict[str, Any]]) -> Hierarchy | None:
    kinds = ("parents", "synonyms", "description")
    if not any(kind in entry for entry in entries for kind in kinds):
        return None
    return Hierarchy(
        {
            str(entry["name"]): LabelFacts(
                tuple(map(str, entry.get("parents", ()))),
                tuple(map(str, entry.get("synonyms", ()))),
                str(entry.get("description", "")),
            )
            for entry in entries
        }
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BundleError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise BundleError(f"{path} should hold a mapping")
    return value


def model_card(bundle: Bundle, results: dict[str, Any]) -> str:
    """A page for people: what the model does, how good it is, what to mind."""
    data, config = results["data"], bundle.config
    scored = sorted((row for row in results["labels"] if row["ap"] is not None), key=lambda row: row["ap"])
    weakest = ", ".join(_strength(row) for row in scored[:5])
    strongest = ", ".join(_strength(row) for row in scored[::-1][:5])
    names = ", ".join(_inline(name) for name in bundle.labels.names[:200])
    kinds = ("top1", "top5", "mAP", "mAP_interpolated", "CF1", "OF1")
    figures = "\n".join(f"| {name} | {_figure(results[name])} |" for name in kinds if name in results)
    notes = "\n".join(f"- {note}" for note in results["notes"]) or "- none"
    kind = "single-label" if bundle.task.single else "multi-label"
    return f"""# {_inline(results["title"])}

A {kind} image classifier: {len(bundle.labels)} labels, {config.backbone.name} backbone ({config.backbone.freeze}),
{config.head.name} head, {bundle.preprocess.size} px. Made with manylabel on {results["created"]}.

    manylabel predict . photo.jpg

## How good it is
On {data["images"]} images of {_inline(str(data["name"]))} ({data["split"]}), in percent
({results["labels_scored"]} of {results["labels_total"]} labels scored; mAP is not interpolated):

| figure | value |
|---|---|
{figures}

Weakest labels (AP): {weakest}. Strongest: {strongest}.

## What to mind
{notes}
{_words(bundle)}- It knows nothing but its labels, and images like those it was trained on. Scores are not certainties:
  the expected calibration error here is {_figure(results["calibration_error"])} percent.

## Labels
{names}{" …" if len(bundle.labels) > 200 else ""}
"""


def _words(bundle: Bundle) -> str:
    if not bundle.text_source:
        return ""
    unseen = (
        [name for name, hidden in zip(bundle.labels, bundle.unseen, strict=True) if hidden]
        if bundle.unseen is not None
        else []
    )
    told = f" Never told in training: {', '.join(map(_inline, unseen[:100]))}." if unseen else ""
    new = (
        " Other labels can be asked for: manylabel predict . photo.jpg --labels …"
        if bundle.model.head.zero_shot
        else ""
    )
    return f"- Labels are known by their text vectors: {_inline(bundle.text_source)}.{told}{new}\n"


def _strength(row: dict[str, Any]) -> str:
    return f"{_inline(row['name'])} ({row['ap']:.1f}, {row['support']} images)"


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _inline(text: str) -> str:
    """Text that Markdown and HTML leave alone."""
    for character in "\\`*_{}[]<>#|!":
        text = text.replace(
            character, f"\\{character}" if character not in "<>" else {"<": "&lt;", ">": "&gt;"}[character]
        )
    return " ".join(text.split())[:200]


__all__ = ["Bundle", "find_bundle", "load_bundle", "save_bundle"]
