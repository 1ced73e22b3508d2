"""Predictions in files that other programs take: a CSV for spreadsheets, Label Studio tasks for people to correct."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from manylabel.atomic import replacing, write_text
from manylabel.data.read.label_studio_config import CONFIG_NAME
from manylabel.data.write.csv import choose_delimiter
from manylabel.data.write.json_list import json_list
from manylabel.data.write.label_studio import labelling_config, task_of_scores
from manylabel.output import check_output
from manylabel.predict import Prediction
from manylabel.spreadsheet import safe_cell

COLUMNS = ("file_name", "labels", "scores", "error")
CSV_HEADER = ",".join(COLUMNS)  # how the files begin
TASKS = '[\n{"data"'
Add = Callable[[Prediction], None]


@contextmanager
def csv_file(path: Path, labels: Sequence[str]) -> Iterator[Add]:
    """file_name, labels (those above their thresholds) with their scores, and why an image could not be read."""
    delimiter = choose_delimiter(labels)
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)

        def add(prediction: Prediction) -> None:
            above = [entry for entry in prediction.labels if entry.above]
            cells = (
                prediction.image,
                delimiter.join(entry.label for entry in above),
                delimiter.join(f"{entry.score:.4f}" for entry in above),
                prediction.error or "",
            )
            rows.writerow(map(safe_cell, cells))

        yield add


@contextmanager
def label_studio_file(path: Path, labels: Sequence[str]) -> Iterator[Add]:
    """Tasks with predictions, and the labelling config beside them; images that cannot be read are left out."""
    config = path.parent / CONFIG_NAME
    check_output(config, "<View>")
    with json_list(path) as write:

        def add(prediction: Prediction) -> None:
            if prediction.error is None:
                scored = [(entry.label, entry.score, entry.above) for entry in prediction.labels]
                write(task_of_scores(prediction.image, scored))

        yield add
    write_text(config, labelling_config(labels, boxes=False))
