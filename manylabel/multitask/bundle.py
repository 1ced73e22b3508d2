"""What leaves a run with several tasks: a folder with everything a prediction needs, and nothing that runs code.

weights.safetensors   transformer, heads, and how many experts each task uses
tasks.json            kind, labels and thresholds of each task
config.yaml           the resolved settings of the run
README.md             model card
checksums.json        sha256 of each of the above
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from manylabel.atomic import sha256, sweep, write_json, write_text
from manylabel.bundle import CHECKSUMS, check_sums, find_bundle
from manylabel.config import MultiTaskConfig, dump, load_yaml, parse
from manylabel.error import BundleError, ManylabelError
from manylabel.metric import fit_thresholds
from manylabel.multitask.model import MultiTaskModel
from manylabel.multitask.work import Judgement, TaskWork
from manylabel.training.checkpoint import Checkpoint, load_tensors, save_tensors

FORMAT = 2  # 2: normalised box heads
FILES = ("weights.safetensors", "tasks.json", "config.yaml", "README.md")


@dataclass(frozen=True)
class TaskFacts:
    """What a prediction must know of a task beside its weights."""

    labels: tuple[str, ...]
    thresholds: tuple[float, ...] = ()  # of classification, one for each label; of detection, one for all scores

    @classmethod
    def of(cls, work: TaskWork, judged: Judgement) -> TaskFacts:
        names = work.table.labels.names
        if work.config.kind == "detection":
            return cls(names, (0.5 if judged.threshold is None else judged.threshold,))
        if work.config.kind == "single_label" or judged.scores is None or judged.rows is None:
            return cls(names, (0.0,) * len(names))  # the highest score decides
        return cls(names, tuple(fit_thresholds(judged.scores, work.table.matrix[judged.rows]).tolist()))


@dataclass(frozen=True)
class MultiTaskBundle:
    """A model for several tasks that is ready to be used."""

    model: MultiTaskModel
    config: MultiTaskConfig
    tasks: Mapping[str, TaskFacts]


def save_multitask_bundle(
    folder: Path,
    model: MultiTaskModel,
    config: MultiTaskConfig,
    tasks: Mapping[str, TaskFacts],
    results: dict[str, Any],
) -> Path:
    """Write a bundle; the checksums come last, so a half-written one is never taken for whole."""
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    (folder / CHECKSUMS).unlink(missing_ok=True)
    save_tensors(folder / "weights.safetensors", Checkpoint(dict(model.state_dict()), {}))
    write_json(
        folder / "tasks.json", {"format": FORMAT, "tasks": {name: asdict(facts) for name, facts in tasks.items()}}
    )
    write_text(folder / "config.yaml", dump(config))
    write_text(folder / "README.md", _card(results))
    write_json(folder / CHECKSUMS, {"format": FORMAT, "sha256": {name: sha256(folder / name) for name in FILES}})
    return folder


def load_multitask_bundle(path: Path | str) -> MultiTaskBundle:
    """A bundle from its folder (or its run's), after its checksums have been compared."""
    folder = find_bundle(Path(path))
    check_sums(folder, FILES)
    try:
        config = parse(MultiTaskConfig, load_yaml(folder / "config.yaml"))
        told = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            raise BundleError("it was made by another one; train it again")
        stored = told["tasks"]
        tasks = {
            str(name): TaskFacts(tuple(map(str, facts["labels"])), tuple(map(float, facts["thresholds"])))
            for name, facts in stored.items()
        }
        model = MultiTaskModel(config, {name: len(facts.labels) for name, facts in tasks.items()}, load_weights=False)
        model.load_state_dict(load_tensors(folder / "weights.safetensors").tensors)
    except (KeyError, TypeError, ValueError, RuntimeError, ManylabelError) as error:
        raise BundleError(f"{folder} is not a bundle of this version of manylabel: {error}") from error
    return MultiTaskBundle(model.eval(), config, tasks)


def _card(results: dict[str, Any]) -> str:
    rows = "\n".join(
        f"| {name} | {task['kind']} | {task['labels']} | {_figures(task['figures'])} | {task['experts']} "
        f"| {task['active_parameters'] / 1e6:.2f} M |"
        for name, task in results["tasks"].items()
    )
    return f"""# {results["title"]}

One model for several tasks, made with manylabel on {results["created"]}.

    manylabel predict . photo.jpg --task {next(iter(results["tasks"]))}

| task | kind | labels | on the val images, percent | experts of a token | parameters in use |
|---|---|---|---|---|---|
{rows}

It knows nothing but its labels, and images like those it was trained on.
"""


def _figures(figures: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in figures.items() if value is not None) or "–"


__all__ = ["MultiTaskBundle", "TaskFacts", "load_multitask_bundle", "save_multitask_bundle"]
