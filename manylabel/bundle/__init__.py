"""What leaves a run: a folder with everything a prediction needs, and nothing that runs code when it is opened.

weights.safetensors   backbone, neck and head
labels.json           names in the order of the logits, with their thresholds, parents, synonyms and descriptions
preprocess.json       how an image becomes the network's input
config.yaml           the resolved settings of the run
README.md             model card: what it is, how good, on what
checksums.json        sha256 of each of the above
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manylabel.bundle import facts
from manylabel.bundle.card import figure_list
from manylabel.config import Config, dump, load_yaml, parse
from manylabel.core.decision import Activation
from manylabel.error import BundleError, ManylabelError
from manylabel.head import HEADS
from manylabel.hierarchy import Hierarchy, LabelFacts
from manylabel.labels import LabelSpace
from manylabel.model import Model
from manylabel.preprocess import Preprocess
from manylabel.runtime.fork import one_thread_in_children
from manylabel.storage.allowance import Allowance
from manylabel.storage.atomic import sha256, sweep, write_json, write_text
from manylabel.storage.json_text import read_object
from manylabel.storage.plain_file import KB, MB
from manylabel.storage.tensor_file import read_tensors
from manylabel.task import Classification, task_of
from manylabel.training.checkpoint import Checkpoint, save_tensors, without_prefix

READING = (
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    RuntimeError,
    AttributeError,
    AssertionError,
    ManylabelError,
)
FORMAT = 1
FILES = ("weights.safetensors", "labels.json", "preprocess.json", "config.yaml", "README.md")
CHECKSUMS = "checksums.json"
LARGEST_FACTS = 64 * MB
MOST_PIXELS = 1024 * 1024  # of a blank image that a model is tried with


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
    activation: Activation | None = None  # what makes scores of logits; None = as the loss says
    training_images: np.ndarray | None = None  # [N] that have each label; bundles of earlier versions do not tell

    @property
    def task(self) -> Classification:
        return task_of(self.config, self.activation)

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
        "activation": bundle.task.activation,  # a loss that somebody registered is not there when others load this
        "labels": [{"name": name, "threshold": value, **_facts(bundle.hierarchy, name)} for name, value in pairs],
        **({} if bundle.training_images is None else {"training_images": bundle.training_images.tolist()}),
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
    sums = read_object(folder / CHECKSUMS, BundleError, most=64 * KB).get("sha256")
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
    one_thread_in_children()
    folder = find_bundle(Path(path))
    if (folder / "tasks.json").is_file():
        raise BundleError(
            f"{folder} is a model for several tasks: manylabel predict and evaluate take it, with --task NAME; in "
            "Python, manylabel.TaskPredictor does"
        )
    check_sums(folder, FILES)
    with as_bundle(folder):
        return _read(folder)


@contextmanager
def as_bundle(folder: Path) -> Iterator[None]:
    """What goes wrong inside is said of this bundle."""
    try:
        yield
    except READING as error:
        raise BundleError(f"{folder} is not a bundle of this version of manylabel: {brief(error)}") from error


def _read(folder: Path) -> Bundle:
    config = parse(Config, load_yaml(folder / "config.yaml"))
    preprocess = parse(Preprocess, _object(folder / "preprocess.json"), "preprocess")
    where = folder / "labels.json"
    told = _object(where)
    if told.get("format", FORMAT) != FORMAT:
        raise BundleError("it was made by another one; train it again")
    entries = [
        facts.mapping(entry, f"{where}, labels[{i}]")
        for i, entry in enumerate(facts.items(told.get("labels"), f"{where}, labels"))
    ]
    labels = facts.label_space([entry.get("name") for entry in entries], f"{where}, names of labels")
    thresholds = [facts.threshold(e.get("threshold"), f"{where}, labels[{i}].threshold") for i, e in enumerate(entries)]
    hierarchy = _hierarchy(entries, where)
    # the size that was used, not the wish for a larger one, which these weights may not have taken
    config = replace(config, backbone=replace(config.backbone, image_size=preprocess.size, enlarge=1.0))
    state = read_tensors(folder / "weights.safetensors", BundleError).tensors
    facts.check_weights(state, str(folder / "weights.safetensors"))
    stored = HEADS.get(config.head.name).knowledge_of(without_prefix("head", state), len(labels))
    with Allowance(state, pixels=6 * preprocess.size**2):
        model = Model(config, len(labels), load_weights=False, knowledge=stored)
    model.load_state_dict(state)
    model.backbone.use(preprocess)
    _try_out(model.eval())
    return Bundle(
        model,
        config,
        labels,
        np.array(thresholds),
        preprocess,
        facts.text(told.get("thresholds_fitted_on", ""), f"{where}, thresholds_fitted_on"),
        hierarchy,
        facts.text(told.get("text_source", ""), f"{where}, text_source"),
        facts.activation(told.get("activation"), f"{where}, activation") or task_of(config).activation,
        facts.counts(told.get("training_images"), len(labels), f"{where}, training_images"),
    )


@torch.no_grad()
def _try_out(model: Model) -> None:
    """A blank image through it: weights may be numbers, and their answer none."""
    side = model.backbone.preprocess.size
    if side * side <= MOST_PIXELS:
        check_answer(model(torch.zeros(1, 3, side, side)).logits)


def check_answer(scores: Tensor) -> Tensor:
    """The same scores, if they are numbers."""
    if not torch.isfinite(scores).all():
        raise BundleError("the model's scores are no numbers: its weights are damaged; get the bundle again")
    return scores


def brief(error: BaseException) -> str:
    """The first lines of what torch says of weights that do not fit, and all of what we say."""
    return "; ".join(line.strip() for line in (str(error) or type(error).__name__).splitlines()[:3])[:500]


def _facts(hierarchy: Hierarchy | None, name: str) -> dict[str, Any]:
    """What the hierarchy says of a label, as far as it says anything."""
    return {} if hierarchy is None else {key: value for key, value in asdict(hierarchy.facts[name]).items() if value}


def _hierarchy(entries: list[Mapping[str, Any]], where: Path) -> Hierarchy | None:
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
        str(where),
    )


def _object(path: Path) -> dict[str, Any]:
    return read_object(path, BundleError, most=LARGEST_FACTS)


def model_card(bundle: Bundle, results: dict[str, Any]) -> str:
    """A page for people: what the model does, how good it is, what to mind."""
    data, config = results["data"], bundle.config
    learnt = [row for row in results["labels"] if row["ap"] is not None and not row.get("never_trained")]
    scored = sorted(learnt, key=lambda row: row["ap"])
    weakest = ", ".join(_strength(row) for row in scored[:5])
    strongest = ", ".join(_strength(row) for row in scored[::-1][:5])
    names = ", ".join(_inline(name) for name in bundle.labels.names[:200])
    notes = "\n".join(f"- {note}" for note in results["notes"]) or "- none"
    kind = bundle.task.kind.replace("_", "-")
    return f"""# {_inline(results["title"])}

A {kind} image classifier: {len(bundle.labels)} labels, {config.backbone.name} backbone ({config.backbone.freeze}),
{config.head.name} head, {bundle.preprocess.size} px. Made with manylabel on {results["created"]}.

    manylabel predict . photo.jpg

## How good it is
On {data["images"]} images of {_inline(str(data["name"]))} ({data["split"]}), in percent
({results["labels_scored"]} of {results["labels_total"]} labels scored):

{figure_list(results)}

Weakest labels (AP): {weakest}. Strongest: {strongest}.

## What to mind
{notes}
{_words(bundle)}- It knows nothing but its labels, and images like those it was trained on. Scores are not certainties;
  how far they are from the shares that come true stands above.

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


def _inline(text: str) -> str:
    """Text that Markdown and HTML leave alone."""
    for character in "\\`*_{}[]<>#|!":
        text = text.replace(
            character, f"\\{character}" if character not in "<>" else {"<": "&lt;", ">": "&gt;"}[character]
        )
    return " ".join(text.split())[:200]


__all__ = ["Bundle", "as_bundle", "check_answer", "find_bundle", "load_bundle", "save_bundle"]
