"""Predictions in files that other programs take: a CSV for spreadsheets, Label Studio tasks for people to correct."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from manylabel.data.read.label_studio_config import CONFIG_NAME
from manylabel.data.write.csv import choose_delimiter
from manylabel.data.write.json_list import json_list
from manylabel.data.write.label_studio import labelling_config, task_of_scores
from manylabel.data.write.target import refuse_label
from manylabel.inference.prediction import Prediction
from manylabel.spreadsheet import refuse_cell, safe_cell, sheet_writer
from manylabel.storage.receipt import replacing_ours, write_ours

COLUMNS = ("file_name", "labels", "scores", "error")
Add = Callable[[Prediction], None]


@contextmanager
def csv_file(path: Path, labels: Sequence[str], top: int | None = None) -> Iterator[Add]:
    """file_name, labels (those above their thresholds, at most `top`) with their scores, and why an image could not be read.

    Bytes of a file name that are not UTF-8 are written as \\udcff and the like; labels that a sheet cannot hold are refused.
    """
    for label in labels:
        refuse_label(label)
        refuse_cell(label, str(path), "label")
    delimiter = choose_delimiter(labels)
    with (
        replacing_ours(path) as temporary,
        open(temporary, "w", newline="", encoding="utf-8", errors="backslashreplace") as file,
    ):
        rows = sheet_writer(file)
        rows.writerow(COLUMNS)

        def add(prediction: Prediction) -> None:
            above = [] if prediction.error else [entry for entry in prediction.labels if entry.above][:top]
            cells = (
                prediction.image,
                delimiter.join(entry.label for entry in above),
                delimiter.join(f"{entry.score:.4f}" for entry in above),
                prediction.error or "",
            )
            rows.writerow(map(safe_cell, cells))

        yield add


@contextmanager
def label_studio_file(path: Path, labels: Sequence[str], top: int | None = None) -> Iterator[Add]:
    """Tasks with predictions (at most `top` labels), and the labelling config beside them; images that cannot be read are
    left out."""
    interface = labelling_config(labels, boxes=False)  # refuses what it cannot hold before anything is written
    with json_list(path) as write:

        def add(prediction: Prediction) -> None:
            if prediction.error is None:
                scored = [(entry.label, entry.score, entry.above) for entry in prediction.labels]
                write(task_of_scores(prediction.image, scored, top))

        yield add
    write_ours(path.parent / CONFIG_NAME, interface)
