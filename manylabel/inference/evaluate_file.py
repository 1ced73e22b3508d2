"""An exported file judged on labelled images, from the pixels on; no torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from manylabel import console
from manylabel.config import DataConfig, override, parse
from manylabel.data.bad_images import BadImages
from manylabel.data.one_label import with_one_label_each
from manylabel.data.read import read_table
from manylabel.data.table import Table, fingerprint
from manylabel.error import ConfigError, DataError, DecodeError
from manylabel.evaluation import describe, details, judge
from manylabel.inference.exported import ExportedLabels
from manylabel.inference.exported_file import ExportedTask, open_exported
from manylabel.metric.label_kind import LABEL_KINDS
from manylabel.suggest import closest

BATCH = 64
NOT_KNOWN = "an exported file does not say which images its model was trained on: they may be among these"


def evaluate_file(
    path: Path, *, data: str | None, task: str | None = None, split: str | None = None, settings: Iterable[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(results, details) of one task of an exported file."""
    file = open_exported(path)
    if data is None:
        raise DataError(f"{path} does not say where labelled images are; name them with --data")
    if task is None and len(file.tasks) > 1:
        raise ConfigError(f"{path} has several tasks; choose one with --task: {', '.join(file.tasks)}")
    name = next(iter(file.tasks)) if task is None else task
    if name not in file.tasks:
        raise ConfigError(f"there is no task {name!r} among {', '.join(file.tasks)}{closest(name, file.tasks)}")
    asked = override({"data": {"path": data}}, settings)
    if len(asked) > 1:
        raise ConfigError(
            f"an exported file takes settings of the data only, e.g. data.images=…, not {list(asked)[1]!r:.60}"
        )
    config = parse(DataConfig, asked["data"], "data")
    table, part = _table(read_table(config), file.tasks[name], split)
    bad = BadImages(len(table), config.max_bad_share)
    rows, scores = _scores(ExportedLabels(file, name, BATCH), table, bad)
    return _judged(file.tasks[name], path, table.subset(rows), part or "all", scores, len(bad))


def _table(table: Table, task: ExportedTask, split: str | None) -> tuple[Table, str | None]:
    """The images that are judged, with the labels of the model."""
    table, part = table.part(split)
    table = table.with_labels(task.facts.labels, task.facts.hierarchy)
    table = with_one_label_each(table, training=False) if task.one_label else table
    for note in table.notes:
        console.say(f"{table.name}: {note}")
    return table, part


def _scores(predictor: ExportedLabels, table: Table, bad: BadImages) -> tuple[np.ndarray, np.ndarray]:
    """Rows that could be read, and what the model says of them [n, N]."""
    rows: list[int] = []
    found: list[np.ndarray] = []
    with console.counting("evaluating", len(table)) as advance:
        for batch in _batches(table, predictor, bad):
            found.append(predictor.score_batch([pixels for _, pixels in batch]))
            rows += [row for row, _ in batch]
            advance(len(batch))
    if not rows:
        raise DataError("there is no readable image to evaluate the model on")
    return np.array(rows), np.concatenate(found)


def _batches(table: Table, predictor: ExportedLabels, bad: BadImages) -> Iterator[list[tuple[int, np.ndarray]]]:
    waiting: list[tuple[int, np.ndarray]] = []
    for row, key in enumerate(map(str, table.keys)):
        try:
            waiting.append((row, predictor.prepared(table.source.read(key, at_least=predictor.at_least))))
        except (DecodeError, OSError) as error:
            bad.add([(key, str(error))])
        if len(waiting) == BATCH:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def _judged(
    task: ExportedTask, path: Path, judged: Table, split: str, scores: np.ndarray, bad: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    facts = task.facts
    here = bool(facts.fitted_on) and fingerprint(judged.keys) == facts.fitted_on
    figures = judge(
        scores,
        judged.matrix,
        judged.labels,
        facts.thresholds,
        fitted_here=here,
        hierarchy=facts.hierarchy,
        task=LABEL_KINDS[task.kind],
        training_images=facts.training_images,
    )
    figures["notes"] += [*judged.notes, NOT_KNOWN]
    head, _, backbone = task.model.partition(" on ")
    model = {
        "backbone": backbone,
        "task": task.kind,
        "head": head,
        "image_size": facts.preprocess.size,
        "file": path.name,
    }
    data = {"name": judged.name, "split": split, "images": len(judged), "bad_images": bad}
    known: dict[str, Any] = {"trained_images": None, "trained_near": None, "warnings": []}
    results = describe(task.model, data, model, {**known, **figures})
    return results, dict(details(scores, judged.matrix, judged.labels, judged.keys, judged.source, []))
